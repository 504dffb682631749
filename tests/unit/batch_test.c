/* Batches given to a real server, without a transport. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "mcp/exchange.h"
#include "transport/batch.h"

enum { CALLS_MAX = 4 };

struct world {
    struct event_base  *base;
    struct mcp_server  *server;
    struct mcp_session *session;
    struct mcp_call    *calls[CALLS_MAX]; /* of `hang`, in their order */
    size_t              n;
    int                 cancelled, sent, finished, status;
    json_t             *answer;
};

static void on_cancelled(struct mcp_call *c)
{
    ((struct world *)mcp_call_context(c))->cancelled++;
}

static void hang(struct mcp_call *c)
{
    struct world *w = mcp_call_context(c);

    assert_true(w->n < CALLS_MAX);
    w->calls[w->n++] = c;
    mcp_call_on_cancel(c, on_cancelled);
}

static const struct mcp_about about = {.name = "test", .version = "0"};
static const struct mcp_tool  tools[] = {
     {.name = "hang", .description = "h", .input_schema = "{\"type\":\"object\"}", .call = hang},
     {0}};

static void on_send(void *owner, json_t *message)
{
    (void)message;
    ((struct world *)owner)->sent++;
}

static void on_finish(void *owner, int status, json_t *message)
{
    struct world *w = owner;

    w->finished++;
    w->status = status;
    json_decref(w->answer);
    w->answer = json_incref(message);
}

static const struct mcp_exchange_ops ops = {.send = on_send, .finish = on_finish};
static const struct mcp_session_ops  session_ops = {.send = on_send};

static void start(struct world *w, const char *text)
{
    struct mcp_origin from = {w->server, w->session, ""};
    struct err        e = {0};
    autojson json_t  *messages = json_parse(text, strlen(text), &e);

    assert_non_null(messages);
    w->finished = 0;
    if (json_is_array(messages))
        batch_start(&from, messages, &ops, w);
    else
        mcp_exchange_start(&from, messages, &ops, w);
}

static void initialize(struct world *w, const char *version)
{
    char text[300];

    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
             "\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\","
             "\"version\":\"0\"}}}",
             version);
    start(w, text);
    assert_int_equal(w->status, 200);
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->base = event_base_new();
    w->server = mcp_server_new(w->base, &about, w);
    mcp_server_add_tools(w->server, tools);
    w->session = mcp_session_new(w->server, "", &session_ops, w);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    mcp_session_free(w->session);
    mcp_server_free(w->server);
    event_base_free(w->base);
    json_decref(w->answer);
    free(w);
    return 0;
}

#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"ping\"}"
#define NOTE "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}"
#define HANG(id)                                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tools/"                                      \
    "call\",\"params\":{\"name\":\"hang\"}}"
#define MODERN                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"server/discover\",\"params\":{\"_meta\":{"         \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}"

/* The ids that were answered, as "1 2", each error with its code behind it. */
static const char *answered(const struct world *w)
{
    static char text[200];
    size_t      i, n = 0;
    json_t     *answer;

    text[0] = '\0';
    json_array_foreach (w->answer, i, answer) {
        const json_t  *code = json_object_get(json_object_get(answer, "error"), "code");
        autofree char *id = json_dumps(json_object_get(answer, "id"), JSON_ENCODE_ANY);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "", id ? id : "none");
        if (code)
            n += (size_t)snprintf(text + n, sizeof text - n, "!%d", (int)json_integer_value(code));
    }
    return text;
}

static void answers_in_one_array(void **state)
{
    struct world *w = *state;

    initialize(w, "2025-03-26");
    start(w, "[" PING(1) "," NOTE "," PING("two") "]");
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->status, 200);
    assert_string_equal(answered(w), "1 \"two\"");
    start(w, "[" NOTE "," NOTE "]");
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->status, 202);
    assert_null(w->answer);
}

static void what_is_refused_as_a_whole(void **state)
{
    struct world      *w = *state;
    autobuf struct buf many;

    buf_init(&many, 64 << 10);
    start(w, "[" PING(1) "]"); /* before it is known what is spoken */
    assert_int_equal(w->status, 400);
    initialize(w, "2025-03-26");
    start(w, "[]");
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->status, 400);
    assert_true(json_is_object(w->answer));
    assert_null(json_object_get(w->answer, "id"));
    buf_printf(&many, "[" NOTE);
    for (int i = 1; i < 256; i++)
        buf_printf(&many, "," NOTE);
    buf_printf(&many, "]");
    start(w, buf_text(&many));
    assert_int_equal(w->status, 202);
    many.size--;
    buf_printf(&many, "," NOTE "]");
    start(w, buf_text(&many));
    assert_int_equal(w->status, 400);
}

static void revisions_without_batches(void **state)
{
    struct world *w = *state;

    initialize(w, "2025-06-18");
    start(w, "[" PING(1) "]");
    assert_int_equal(w->status, 400);
}

static void what_is_refused_alone(void **state)
{
    struct world *w = *state;

    initialize(w, "2024-11-05");
    start(w, "[" PING(1) ",{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\"}," MODERN
                         ",7,{},[" PING(5) "]," PING(3) "]");
    assert_int_equal(w->status, 200);
    assert_string_equal(answered(w), "1 2!-32600 9!-32600 none!-32600 none!-32600 none!-32600 3");
}

static void waits_for_the_last(void **state)
{
    struct world *w = *state;

    initialize(w, "2025-03-26");
    start(w, "[" HANG(1) "," PING(2) "," HANG(3) "]");
    assert_int_equal(w->finished, 0);
    mcp_call_done(w->calls[1]);
    assert_int_equal(w->finished, 0);
    mcp_call_done(w->calls[0]);
    assert_int_equal(w->finished, 1);
    assert_string_equal(answered(w), "2 3 1");
}

static void cancelled_members_are_left_out(void **state)
{
    struct world *w = *state;

    initialize(w, "2025-03-26");
    start(w, "[" HANG(1) "," HANG(2) ",{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                                     "\"params\":{\"requestId\":1}}]");
    assert_int_equal(w->cancelled, 1);
    assert_int_equal(w->finished, 0);
    mcp_call_done(w->calls[1]);
    assert_int_equal(w->finished, 1);
    assert_string_equal(answered(w), "2");
}

static void ends_with_its_session(void **state)
{
    struct world *w = *state;

    initialize(w, "2025-03-26");
    start(w, "[" HANG(1) "," HANG(2) "]");
    mcp_session_free(w->session);
    w->session = NULL;
    assert_int_equal(w->cancelled, 2);
    assert_int_equal(w->finished, 1);
    assert_int_equal(w->status, 202);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(answers_in_one_array),      CASE(what_is_refused_as_a_whole),
        CASE(revisions_without_batches), CASE(what_is_refused_alone),
        CASE(waits_for_the_last),        CASE(cancelled_members_are_left_out),
        CASE(ends_with_its_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
