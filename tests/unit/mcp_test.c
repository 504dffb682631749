/* The protocol without a transport: messages go in as JSON texts, and everything that comes out is
 * collected. `on_http` decides whether the exchange has headers, as the two transports differ; in
 * a batch it has none on HTTP either. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp/exchange.h"
#include "mcp/rpc.h"
#include "mcp/server.h"

#define NS "io.modelcontextprotocol/"
#define TASKS "\"extensions\":{\"" NS "tasks\":{}}"

enum { STATIC_ROWS = 130, LISTED_ROWS = 3, VALUES = 150, BIG = 40 << 20, LARGE = (8 << 20) - 4096 };

static struct event_base *base;
static struct mcp_server *server;
static json_t            *out;    /* all messages, in order */
static json_t            *sent;   /* to sessions: what belongs to no request */
static int                status; /* of the last finish */
static int                cancelled;
static bool               on_http, in_batch;
static const char        *principal = "";

/* ---- what is served ---- */

static void on_cancelled(struct mcp_call *c)
{
    (void)c;
    cancelled++;
}

static json_t *question(const char *mode)
{
    return json_pack("{s:s, s:s*}", "message", "?", "mode", mode);
}

static void hang(struct mcp_call *c)
{
    mcp_call_on_cancel(c, on_cancelled);
}

static void hurry(struct mcp_call *c)
{
    mcp_call_on_cancel(c, on_cancelled);
    mcp_call_set_deadline(c, 30);
}

static void hurry_and_ask(struct mcp_call *c)
{
    if (!mcp_call_answer(c, "q"))
        hurry(c);
    mcp_call_ask(c, "q", "elicitation/create", question(NULL)); /* hangs once it is answered */
}

static void ask_form(struct mcp_call *c)
{
    if (mcp_call_ask(c, "q", "elicitation/create", question(NULL)))
        mcp_call_finish(c, "answered");
}

static void ask_url(struct mcp_call *c)
{
    mcp_call_ask(c, "q", "elicitation/create", question("url"));
}

static void ask_model(struct mcp_call *c)
{
    mcp_call_on_cancel(c, on_cancelled);
    mcp_call_ask(c, "q", "sampling/createMessage", json_object());
}

static void ask_b(struct mcp_call *c)
{
    mcp_call_ask(c, "b", "elicitation/create", question(NULL));
}

/* The second question comes while the first is open. */
static void ask_twice(struct mcp_call *c)
{
    mcp_call_as_task(c);
    if (mcp_call_answer(c, "a") && mcp_call_answer(c, "b"))
        mcp_call_finish(c, "both");
    else if (!mcp_call_ask(c, "a", "elicitation/create", question(NULL)))
        mcp_call_after(c, 0, ask_b);
}

static void ask_nothing(struct mcp_call *c)
{
    mcp_call_ask(c, "q", "elicitation/create", json_pack("{s:s}", "message", "\xff"));
}

static void never_in_task(struct mcp_call *c)
{
    mcp_call_finish(c, mcp_call_as_task(c) ? "a task" : "no task");
}

static void babble(struct mcp_call *c)
{
    mcp_call_progress(c, NAN, 1, "no number");
    mcp_call_progress(c, INFINITY, 1, "no number");
    mcp_call_progress(c, 1, NAN, "\xff is not UTF-8");
    mcp_call_progress(c, 1, 2, "not more than before");
    mcp_call_log(c, "error", "\xff", "\xff");
    mcp_call_image(c, "", "image/\xff");
    mcp_call_done(c);
}

static void wait_in_task(struct mcp_call *c)
{
    mcp_call_as_task(c);
    hang(c);
}

static void big_in_task(struct mcp_call *c)
{
    autofree char *text = calloc(1, BIG + 1);

    mcp_call_as_task(c);
    memset(text, 'x', BIG);
    mcp_call_finish(c, "%s", text);
}

/* Everything that some revision does not know. */
static void show(struct mcp_call *c)
{
    mcp_call_progress(c, 1, 2, "half");
    mcp_call_resource_link(c, json_pack("{s:s, s:s}", "uri", "s://1", "name", "one"));
    mcp_call_audio(c, "", "audio/wav");
    mcp_call_content(c, json_pack("{s:s, s:s}", "type", "text", "text", "any block"));
    mcp_call_structured(c, json_pack("{s:b, s:b}", "links", mcp_call_knows_links(c), "progress",
                                     mcp_call_wants_progress(c)));
    mcp_call_done(c);
}

static const char icons[] = "[{\"src\":\"https://example.com/icon.png\"}]";

#define TOOL(symbol, ...)                                                                          \
    {                                                                                              \
        .name = #symbol, .description = #symbol, .input_schema = "{\"type\":\"object\"}",          \
        .call = (symbol), ##__VA_ARGS__                                                            \
    }

static const struct mcp_tool tools[] = {
    TOOL(hang),
    TOOL(hurry),
    TOOL(hurry_and_ask),
    TOOL(ask_form, .needs = "elicitation"),
    TOOL(ask_url),
    TOOL(ask_model),
    TOOL(ask_twice, .task = MCP_TASK_OPTIONAL),
    TOOL(ask_nothing),
    TOOL(never_in_task),
    TOOL(babble),
    TOOL(wait_in_task, .task = MCP_TASK_OPTIONAL),
    TOOL(big_in_task, .task = MCP_TASK_OPTIONAL),
    TOOL(show, .title = "Show", .icons = icons, .output_schema = "{\"type\":\"object\"}",
         .hints = {.read_only = true}),
    {0},
};

static void greet(struct mcp_call *c)
{
    mcp_call_message_text(c, "user", "hello");
    mcp_call_done(c);
}

static void greet_as_tool(struct mcp_call *c)
{
    mcp_call_finish(c, "hello");
}

static const struct mcp_prompt prompts[] = {
    {"greet", "Greet", .icons = icons, .get = greet},
    {"greet_as_tool", .get = greet_as_tool},
    {0},
};

static void read_row(struct mcp_call *c)
{
    mcp_call_contents(c, NULL, mcp_call_uri(c));
    mcp_call_cache(c, 7000, true);
    mcp_call_done(c);
}

/* One row a page. */
static void list_rows(struct mcp_call *c)
{
    int            i = mcp_call_cursor(c) ? atoi(mcp_call_cursor(c)) : 0;
    autofree char *uri = str_format("l://%d", i), *next = str_format("%d", i + 1);

    mcp_call_listed(c, json_pack("{s:s, s:s}", "uri", uri, "name", mcp_call_principal(c)));
    if (i + 1 < LISTED_ROWS)
        mcp_call_set_next(c, next);
    mcp_call_after(c, 0, mcp_call_done);
}

static void complete(struct mcp_call *c)
{
    const char *other = json_string_value(json_object_get(mcp_call_arguments(c), "other"));

    assert_false(mcp_call_as_task(c)); /* tools alone can be tasks */
    for (int i = 0; i < VALUES; i++) {
        autofree char *value = str_format("%s|%s|%s|%s|%d", mcp_call_completes(c),
                                          mcp_call_prefix(c), other, mcp_call_principal(c), i);
        mcp_call_value(c, value);
    }
    mcp_call_done(c);
}

static char                uris[STATIC_ROWS][16];
static struct mcp_resource rows[STATIC_ROWS + 2];
static struct mcp_about    about;

/* ---- the transport ---- */

static void on_send(void *owner, json_t *message)
{
    (void)owner;
    json_array_append(out, message);
}

static void on_finish(void *owner, int its_status, json_t *message)
{
    (void)owner;
    status = its_status;
    if (message)
        json_array_append(out, message);
}

static const char *on_header(void *owner, const char *name)
{
    const json_t *message = owner, *params = json_object_get(message, "params");
    const json_t *meta = json_object_get(params, "_meta");

    if (strcmp(name, "MCP-Protocol-Version") == 0)
        return rpc_string(meta, NS "protocolVersion");
    if (strcmp(name, "Mcp-Method") == 0)
        return rpc_string(message, "method");
    return rpc_string(params, rpc_string(params, "uri") ? "uri" : "name");
}

static void on_session_send(void *owner, json_t *message)
{
    json_array_append_new(sent, json_pack("{s:s, s:O}", "to", owner, "message", message));
}

static const struct mcp_session_ops session_ops = {.send = on_session_send};

static void start_message(struct mcp_session *session, json_t *message)
{
    static const struct mcp_exchange_ops with = {on_send, on_finish, NULL, on_header},
                                         without = {on_send, on_finish, NULL, NULL};
    const struct mcp_origin from = {server, session, principal, on_http};

    mcp_exchange_start(&from, message, on_http && !in_batch ? &with : &without, message);
}

/* `messages` keeps what the headers are read from alive. */
static json_t *messages;

static void send_text(struct mcp_session *session, const char *text)
{
    json_t *message = json_loads(text, 0, NULL);

    assert_non_null(message);
    json_array_append_new(messages, message);
    start_message(session, message);
}

static void send_modern(const char *id, const char *method, const char *params,
                        const char *capabilities)
{
    autofree char *text = str_format(
        "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"%s\",\"params\":{%s%s\"_meta\":{"
        "\"" NS "protocolVersion\":\"2026-07-28\",\"progressToken\":1,\"" NS
        "logLevel\":\"info\",\"" NS "clientCapabilities\":{%s}}}}",
        id, method, params, *params ? "," : "", capabilities);

    send_text(NULL, text);
}

static void call_modern(const char *tool, const char *capabilities)
{
    autofree char *params = str_format("\"name\":\"%s\"", tool);

    send_modern("1", "tools/call", params, capabilities);
}

static void call_legacy(struct mcp_session *s, int id, const char *tool)
{
    autofree char *text = str_format("{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
                                     "\"params\":{\"name\":\"%s\"}}",
                                     id, tool);

    send_text(s, text);
}

static struct mcp_session *begin_session(const char *who, const char *version,
                                         const char *capabilities)
{
    struct mcp_session *s = mcp_session_new(server, who, &session_ops, (void *)who);
    autofree char      *text =
        str_format("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                   "\"protocolVersion\":\"%s\",\"capabilities\":{%s}}}",
                   version, capabilities);

    send_text(s, text);
    send_text(s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    return s;
}

static const json_t *last(void)
{
    assert_true(json_array_size(out) > 0);
    return json_array_get(out, json_array_size(out) - 1);
}

static const json_t *last_result(void)
{
    const json_t *result = json_object_get(last(), "result");

    assert_non_null(result);
    return result;
}

static int last_error(void)
{
    return (int)json_integer_value(json_object_get(json_object_get(last(), "error"), "code"));
}

static const char *last_text(void)
{
    return rpc_string(json_array_get(json_object_get(last_result(), "content"), 0), "text");
}

static void turn_loop(void)
{
    struct timeval some = {.tv_usec = 5000};

    event_base_loopexit(base, &some);
    event_base_dispatch(base);
}

/* Until so many messages have come. */
static void wait_for(size_t n)
{
    for (int i = 0; i < 1000 && json_array_size(out) < n; i++)
        turn_loop();
    assert_int_equal(json_array_size(out), n);
}

static int set_up(void **state)
{
    (void)state;
    base = event_base_new();
    server = mcp_server_new(base, &about, NULL);
    out = json_array();
    sent = json_array();
    messages = json_array();
    cancelled = 0;
    on_http = in_batch = false;
    principal = "";
    about = (struct mcp_about){
        .name = "test", .title = "Test", .version = "0", .icons = icons, .list_ttl_ms = 5000};
    mcp_server_add_tools(server, tools);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mcp_server_free(server);
    event_base_free(base);
    json_decref(out);
    json_decref(sent);
    json_decref(messages);
    return 0;
}

/* ---- time ---- */

static void test_deadline_ends_a_call(void **state)
{
    (void)state;
    call_modern("hurry", "");
    wait_for(1);
    assert_string_equal(last_text(), "timed out");
    assert_true(json_is_true(json_object_get(last_result(), "isError")));
    assert_int_equal(cancelled, 1);
}

static void test_deadline_goes_on_while_the_client_is_asked(void **state)
{
    struct mcp_session *s = begin_session("", "2025-11-25", "\"elicitation\":{}");

    (void)state;
    call_legacy(s, 1, "hurry_and_ask");
    wait_for(3); /* initialize, the question, the end */
    assert_string_equal(last_text(), "timed out");
    assert_int_equal(cancelled, 1);
    mcp_session_free(s);
}

static void test_deadline_goes_on_after_the_answer(void **state)
{
    struct mcp_session *s = begin_session("", "2025-11-25", "\"elicitation\":{}");
    autofree char      *answer = NULL;

    (void)state;
    call_legacy(s, 1, "hurry_and_ask");
    answer = str_format("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"action\":\"accept\"}}",
                        rpc_string(last(), "id"));
    send_text(s, answer);
    wait_for(3);
    assert_string_equal(last_text(), "timed out");
    mcp_session_free(s);
}

static void test_patience_with_a_client_ends(void **state)
{
    struct mcp_session *s = begin_session("", "2025-11-25", "\"sampling\":{}");

    (void)state;
    about.answer_ms = 20;
    call_legacy(s, 1, "ask_model");
    wait_for(3);
    assert_string_equal(last_text(), "the client did not answer in time");
    assert_int_equal(cancelled, 1);
    mcp_session_free(s);
}

static void test_a_task_has_its_time(void **state)
{
    autofree char *params = NULL;

    (void)state;
    about.task_ttl_ms = 50;
    call_modern("wait_in_task", TASKS);
    assert_int_equal(json_integer_value(json_object_get(last_result(), "ttlMs")), 50);
    params = str_format("\"taskId\":\"%s\"", rpc_string(last_result(), "taskId"));
    send_modern("1", "tasks/get", params, TASKS);
    assert_string_equal(rpc_string(last_result(), "status"), "working");
    for (int i = 0; i < 1000 && cancelled == 0; i++)
        turn_loop();
    assert_int_equal(cancelled, 1);
    send_modern("1", "tasks/get", params, TASKS);
    assert_int_equal(last_error(), RPC_INVALID_PARAMS);
}

/* ---- questions ---- */

static void answer_last(struct mcp_session *s, const char *outcome)
{
    autofree char *text =
        str_format("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",%s}", rpc_string(last(), "id"), outcome);

    send_text(s, text);
}

static void test_a_question_while_another_is_open(void **state)
{
    struct mcp_session *s = begin_session("", "2025-11-25", "\"elicitation\":{}");

    (void)state;
    call_legacy(s, 1, "ask_twice");
    assert_int_equal(json_array_size(out), 2);
    turn_loop(); /* the second is asked, and waits */
    assert_int_equal(json_array_size(out), 2);
    answer_last(s, "\"result\":{\"action\":\"accept\"}");
    wait_for(3);
    answer_last(s, "\"result\":{\"action\":\"accept\"}");
    wait_for(4);
    assert_string_equal(last_text(), "both");
    mcp_session_free(s);
}

static void update_task(const char *id, const char *answers)
{
    autofree char *params = str_format("\"taskId\":\"%s\",\"inputResponses\":{%s}", id, answers);

    send_modern("1", "tasks/update", params, TASKS ",\"elicitation\":{}");
}

static const json_t *get_task(const char *id)
{
    autofree char *params = str_format("\"taskId\":\"%s\"", id);

    send_modern("1", "tasks/get", params, TASKS);
    return last_result();
}

static void test_a_question_of_a_task_while_another_is_open(void **state)
{
    autofree char *id = NULL;

    (void)state;
    call_modern("ask_twice", TASKS ",\"elicitation\":{}");
    id = strdup(rpc_string(last_result(), "taskId"));
    turn_loop();
    update_task(id, "\"a\":{\"action\":\"accept\"}");
    turn_loop();
    assert_string_equal(rpc_string(get_task(id), "status"), "input_required");
    assert_non_null(json_object_get(json_object_get(last_result(), "inputRequests"), "b"));
    update_task(id, "\"b\":{\"action\":\"accept\"}");
    turn_loop();
    assert_string_equal(rpc_string(get_task(id), "status"), "completed");
}

/* The retry is another call: who works for this one must hear that it ended. */
static void test_a_modern_round_ends_the_call(void **state)
{
    (void)state;
    call_modern("ask_model", "\"sampling\":{}");
    assert_string_equal(rpc_string(last_result(), "resultType"), "input_required");
    assert_int_equal(cancelled, 1);
    call_modern("ask_model", "");
    assert_int_equal(last_error(), RPC_MISSING_CAPABILITY);
    assert_int_equal(cancelled, 2);
}

static void test_a_refused_question(void **state)
{
    struct mcp_session *s = begin_session("", "2025-11-25", "\"elicitation\":{},\"sampling\":{}");

    (void)state;
    call_legacy(s, 1, "ask_form"); /* there a refusal is an answer */
    answer_last(s, "\"error\":{\"code\":-1,\"message\":\"no\"}");
    wait_for(3);
    assert_string_equal(last_text(), "answered");
    call_legacy(s, 1, "ask_model");
    answer_last(s, "\"error\":{\"code\":-1,\"message\":\"no\"}");
    wait_for(5);
    assert_string_equal(last_text(), "the client refused to answer");
    assert_true(json_is_true(json_object_get(last_result(), "isError")));
    assert_int_equal(cancelled, 1); /* its work ends too */
    mcp_session_free(s);
}

static void must_abort(void (*does)(void))
{
    pid_t pid = fork();
    int   how;

    if (pid == 0) {
        alarm(10);
        close(STDERR_FILENO);
        does();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT);
}

static void ask_modern_nothing(void)
{
    call_modern("ask_nothing", "\"elicitation\":{}");
}

static void get_prompt_as_tool(void)
{
    mcp_server_add_prompts(server, prompts);
    send_modern("1", "prompts/get", "\"name\":\"greet_as_tool\"", "");
}

static void free_server_under_session(void)
{
    begin_session("", "2025-11-25", "");
    mcp_server_free(server);
}

static void test_errors_of_the_program_end_it(void **state)
{
    (void)state;
    must_abort(ask_modern_nothing);
    must_abort(get_prompt_as_tool);
    must_abort(free_server_under_session);
}

/* ---- what the client can do ---- */

static void test_modes_of_elicitation(void **state)
{
    (void)state;
    call_modern("ask_form", "\"elicitation\":{}"); /* no mode is told: forms */
    assert_string_equal(rpc_string(last_result(), "resultType"), "input_required");
    call_modern("ask_form", "\"elicitation\":{\"form\":{}}");
    assert_string_equal(rpc_string(last_result(), "resultType"), "input_required");
    call_modern("ask_form", "\"elicitation\":{\"url\":{}}");
    assert_int_equal(last_error(), RPC_MISSING_CAPABILITY);
    call_modern("ask_url", "\"elicitation\":{\"url\":{}}");
    assert_string_equal(rpc_string(last_result(), "resultType"), "input_required");
    call_modern("ask_url", "\"elicitation\":{}");
    assert_int_equal(last_error(), RPC_MISSING_CAPABILITY);
    assert_int_equal(status, 400);

    json_t *expected = json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "elicitation", "url");
    assert_true(json_equal(json_object_get(json_object_get(last(), "error"), "data"), expected));
    json_decref(expected);
}

static void test_a_need_in_the_legacy_era_is_a_result(void **state)
{
    struct mcp_session *s = begin_session("", "2025-11-25", "");

    (void)state;
    call_legacy(s, 1, "ask_form");
    assert_true(json_is_true(json_object_get(last_result(), "isError")));
    assert_non_null(strstr(last_text(), "elicitation"));
    mcp_session_free(s);
}

/* ---- ids ---- */

static void test_an_id_in_use_is_refused_without_it(void **state)
{
    struct mcp_session *s = begin_session("", "2025-11-25", "");

    (void)state;
    call_legacy(s, 1, "hang");
    call_legacy(s, 1, "hang");
    assert_int_equal(last_error(), RPC_INVALID_REQUEST);
    assert_null(json_object_get(last(), "id"));
    assert_int_equal(status, 400);
    send_text(s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
                 "\"params\":{\"requestId\":1}}");
    assert_int_equal(cancelled, 1);
    call_legacy(s, 1, "hang"); /* free again */
    assert_int_equal(cancelled, 1);
    mcp_session_free(s);
    assert_int_equal(cancelled, 2);
}

/* ---- versions ---- */

static void test_the_oldest_revision_is_for_stdio(void **state)
{
    struct mcp_session *s = begin_session("", "2024-11-05", "");

    (void)state;
    assert_string_equal(rpc_string(last_result(), "protocolVersion"), "2024-11-05");
    mcp_session_free(s);
    on_http = true;
    s = begin_session("", "2024-11-05", "");
    assert_string_equal(rpc_string(last_result(), "protocolVersion"), "2025-11-25");
    mcp_session_free(s);
    s = begin_session("", "2025-03-26", "");
    assert_string_equal(rpc_string(last_result(), "protocolVersion"), "2025-03-26");
    mcp_session_free(s);
}

static void test_a_batch_on_http_is_no_stdio(void **state)
{
    struct mcp_session *s;

    (void)state;
    on_http = in_batch = true;
    s = begin_session("", "2024-11-05", "");
    assert_string_equal(rpc_string(last_result(), "protocolVersion"), "2025-11-25");
    mcp_session_free(s);
}

static void test_a_modern_initialize_is_told_the_versions(void **state)
{
    (void)state;
    send_modern("1", "initialize", "", "");
    assert_int_equal(last_error(), RPC_METHOD_NOT_FOUND);
    assert_int_equal(status, 404);
    assert_non_null(strstr(rpc_string(json_object_get(last(), "error"), "message"), "2025-11-25"));
}

/* ---- nothing malformed leaves ---- */

static void test_numbers_and_texts_that_json_does_not_know(void **state)
{
    const json_t *progress, *params;

    (void)state;
    call_modern("babble", "");
    wait_for(3); /* one progress, one log, the result */
    progress = json_object_get(json_array_get(out, 0), "params");
    assert_true(json_number_value(json_object_get(progress, "progress")) == 1);
    assert_null(json_object_get(progress, "total"));
    assert_string_equal(rpc_string(progress, "message"), "\xef\xbf\xbd is not UTF-8");
    params = json_object_get(json_array_get(out, 1), "params");
    assert_string_equal(rpc_string(params, "logger"), "\xef\xbf\xbd");
    assert_string_equal(
        rpc_string(json_array_get(json_object_get(last_result(), "content"), 0), "mimeType"),
        "image/\xef\xbf\xbd");
}

/* ---- what the revisions know ---- */

static void add_rows(void)
{
    for (int i = 0; i < STATIC_ROWS; i++) {
        snprintf(uris[i], sizeof uris[i], "s://%d", i);
        rows[i] = (struct mcp_resource){
            .uri = uris[i], .name = "static", .title = "Static", .icons = icons, .read = read_row};
    }
    rows[STATIC_ROWS] = (struct mcp_resource){"l://{id}", "family", .complete = complete};
    mcp_server_add_resources(server, rows);
}

static const struct knows {
    const char *date;
    bool        audio, annotations, completions, progress_text; /* since 2025-03-26 */
    bool        structured, links, titles;                      /* since 2025-06-18 */
    bool        icons;                                          /* since 2025-11-25 */
    int         not_found;
} revisions[] = {
    {"2024-11-05", 0, 0, 0, 0, 0, 0, 0, 0, -32002}, {"2025-03-26", 1, 1, 1, 1, 0, 0, 0, 0, -32002},
    {"2025-06-18", 1, 1, 1, 1, 1, 1, 1, 0, -32002}, {"2025-11-25", 1, 1, 1, 1, 1, 1, 1, 1, -32002},
    {"2026-07-28", 1, 1, 1, 1, 1, 1, 1, 1, -32602},
};

/* In a session, or in none; with a progress token in both. */
static void send_in(struct mcp_session *s, const char *method, const char *params)
{
    autofree char *text =
        str_format("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s%s"
                   "\"_meta\":{\"progressToken\":1}}}",
                   method, params, *params ? "," : "");

    if (s)
        send_text(s, text);
    else
        send_modern("1", method, params, "");
}

static void check_has(const json_t *object, const char *member, bool expected)
{
    assert_int_equal(json_object_get(object, member) != NULL, expected);
}

static const json_t *row_of(struct mcp_session *s, const char *method, const char *member, size_t i)
{
    send_in(s, method, "");
    return json_array_get(json_object_get(last_result(), member), i);
}

static void check_rows(struct mcp_session *s, const struct knows *k)
{
    const json_t *tool = row_of(s, "tools/list", "tools", sizeof tools / sizeof *tools - 2);

    assert_string_equal(rpc_string(tool, "name"), "show");
    check_has(tool, "annotations", k->annotations);
    check_has(tool, "outputSchema", k->structured);
    check_has(tool, "title", k->titles);
    check_has(tool, "icons", k->icons);
    static const char *const lists[][2] = {{"prompts/list", "prompts"},
                                           {"resources/list", "resources"}};
    for (size_t i = 0; i < 2; i++) {
        const json_t *row = row_of(s, lists[i][0], lists[i][1], 0);
        check_has(row, "title", k->titles);
        check_has(row, "icons", k->icons);
    }
}

static void check_result(struct mcp_session *s, const struct knows *k)
{
    const json_t *progress, *content, *structured;

    json_array_clear(out);
    send_in(s, "tools/call", "\"name\":\"show\"");
    wait_for(2);
    progress = json_object_get(json_array_get(out, 0), "params");
    check_has(progress, "message", k->progress_text);
    content = json_object_get(last_result(), "content");
    assert_string_equal(rpc_string(json_array_get(content, 0), "type"),
                        k->links ? "resource_link" : "text");
    assert_string_equal(rpc_string(json_array_get(content, 0), k->links ? "uri" : "text"), "s://1");
    assert_string_equal(rpc_string(json_array_get(content, 1), "type"),
                        k->audio ? "audio" : "text");
    assert_string_equal(rpc_string(json_array_get(content, 2), "text"), "any block");
    structured = json_object_get(last_result(), "structuredContent");
    assert_int_equal(structured != NULL, k->structured);
    if (structured) {
        assert_int_equal(json_is_true(json_object_get(structured, "links")), k->links);
        assert_true(json_is_true(json_object_get(structured, "progress")));
    }
    send_in(s, "resources/read", "\"uri\":\"s://1\"");
    assert_string_equal(
        rpc_string(json_array_get(json_object_get(last_result(), "contents"), 0), "text"), "s://1");
    send_in(s, "resources/read", "\"uri\":\"s://none\"");
    assert_int_equal(last_error(), k->not_found);
}

static void test_what_each_revision_knows(void **state)
{
    (void)state;
    add_rows();
    mcp_server_add_prompts(server, prompts);
    for (size_t i = 0; i < sizeof revisions / sizeof *revisions; i++) {
        const struct knows *k = &revisions[i];
        struct mcp_session *s = k->not_found == -32002 ? begin_session("", k->date, "") : NULL;
        const json_t       *about_us;

        if (!s)
            send_modern("1", "server/discover", "", "");
        about_us = s ? json_object_get(last_result(), "serverInfo")
                     : json_object_get(json_object_get(last_result(), "_meta"), NS "serverInfo");
        assert_non_null(about_us);
        check_has(about_us, "title", k->titles);
        check_has(about_us, "icons", k->icons);
        check_has(json_object_get(last_result(), "capabilities"), "completions", k->completions);
        check_rows(s, k);
        check_result(s, k);
        mcp_session_free(s);
    }
}

/* ---- lists, completions, caching ---- */

static void list_page(const char *cursor)
{
    autofree char *params = cursor ? str_format("\"cursor\":%s", cursor) : strdup("");

    send_modern("1", "resources/list", params, "");
}

static void test_pages_of_what_is_registered_and_what_is_made(void **state)
{
    autofree char *next = NULL;
    size_t         seen = 0, pages = 0;

    (void)state;
    add_rows();
    mcp_server_set_resource_lister(server, list_rows);
    principal = "ann";
    do {
        list_page(next);
        wait_for(++pages);
        seen += json_array_size(json_object_get(last_result(), "resources"));
        free(next);
        next = NULL;
        if (rpc_string(last_result(), "nextCursor"))
            next = str_format("\"%s\"", rpc_string(last_result(), "nextCursor"));
    } while (next && pages < 10);
    assert_int_equal(seen, STATIC_ROWS + LISTED_ROWS);
    assert_int_equal(pages, 4); /* 100; 30 and one that is made; one; one */
    assert_string_equal(
        rpc_string(json_array_get(json_object_get(last_result(), "resources"), 0), "name"), "ann");
    assert_string_equal(rpc_string(last_result(), "cacheScope"), "private");
}

static void test_cursors_of_others_are_refused(void **state)
{
    static const char *const bad[] = {"\"0\"", "\"x\"",  "\"-1\"", "\"131\"", "\"1x\"",
                                      "\"\"",  "\":1\"", "7",      "null",    "\" 1\""};

    (void)state;
    add_rows();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        list_page(bad[i]);
        assert_int_equal(last_error(), RPC_INVALID_PARAMS);
    }
}

static void test_caching(void **state)
{
    (void)state;
    add_rows();
    send_modern("1", "tools/list", "", "");
    assert_int_equal(json_integer_value(json_object_get(last_result(), "ttlMs")), 5000);
    assert_string_equal(rpc_string(last_result(), "cacheScope"), "public");
    send_modern("1", "resources/read", "\"uri\":\"s://1\"", "");
    assert_int_equal(json_integer_value(json_object_get(last_result(), "ttlMs")), 7000);
    send_modern("1", "resources/read", "\"uri\":\"s://1\",\"inputResponses\":{\"a\":{}}", "");
    assert_int_equal(json_integer_value(json_object_get(last_result(), "ttlMs")), 0);
    assert_string_equal(rpc_string(last_result(), "cacheScope"), "private");
}

static void test_completions_are_cut_and_counted(void **state)
{
    const json_t *completion;

    (void)state;
    add_rows();
    principal = "ann";
    send_modern("1", "completion/complete",
                "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"l://{id}\"},"
                "\"argument\":{\"name\":\"id\",\"value\":\"pre\"},"
                "\"context\":{\"arguments\":{\"other\":\"chosen\"}}",
                TASKS);
    completion = json_object_get(last_result(), "completion");
    assert_int_equal(json_array_size(json_object_get(completion, "values")), 100);
    assert_string_equal(json_string_value(json_array_get(json_object_get(completion, "values"), 0)),
                        "id|pre|chosen|ann|0");
    assert_int_equal(json_integer_value(json_object_get(completion, "total")), VALUES);
    assert_true(json_is_true(json_object_get(completion, "hasMore")));
}

/* ---- principals ---- */

static void test_changes_reach_their_principal_only(void **state)
{
    static const char   listen[] = "\"notifications\":{\"resourcesListChanged\":true,"
                                   "\"resourceSubscriptions\":[\"s://1\"]}";
    struct mcp_session *ann = begin_session("ann", "2025-11-25", ""),
                       *bob = begin_session("bob", "2025-11-25", "");
    size_t before;

    (void)state;
    add_rows();
    send_text(ann, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/subscribe\","
                   "\"params\":{\"uri\":\"s://1\"}}");
    send_text(bob, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"resources/subscribe\","
                   "\"params\":{\"uri\":\"s://1\"}}");
    principal = "ann";
    send_modern("ann", "subscriptions/listen", listen, "");
    principal = "bob";
    send_modern("bob", "subscriptions/listen", listen, "");
    before = json_array_size(out);

    mcp_server_resources_changed(server, "ann");
    mcp_server_resource_updated(server, "ann", "s://1");
    assert_int_equal(json_array_size(sent), 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(rpc_string(json_array_get(sent, i), "to"), "ann");
    assert_int_equal(json_array_size(out), before + 2);
    for (size_t i = before; i < before + 2; i++)
        assert_string_equal(
            rpc_string(json_object_get(json_object_get(json_array_get(out, i), "params"), "_meta"),
                       NS "subscriptionId"),
            "ann");

    mcp_server_resource_updated(server, NULL, "s://1");
    assert_int_equal(json_array_size(sent), 4);
    assert_int_equal(json_array_size(out), before + 4);
    mcp_session_free(ann);
    mcp_session_free(bob);
}

static void test_tasks_are_counted_by_principal(void **state)
{
    (void)state;
    principal = "ann";
    for (int i = 0; i < 1000; i++) {
        call_modern("wait_in_task", TASKS);
        assert_string_equal(rpc_string(last_result(), "resultType"), "task");
    }
    call_modern("wait_in_task", TASKS); /* it runs within its request */
    assert_int_equal(json_array_size(out), 1000);
    principal = "bob";
    call_modern("wait_in_task", TASKS);
    assert_int_equal(json_array_size(out), 1001);
}

/* Of the task that was made last but `back`. */
static const char *task_status(size_t back)
{
    const json_t  *made = json_array_get(out, json_array_size(out) - 1 - back);
    autofree char *params =
        str_format("\"taskId\":\"%s\"", rpc_string(json_object_get(made, "result"), "taskId"));

    send_modern("1", "tasks/get", params, TASKS);
    return rpc_string(last_result(), "status");
}

static void test_results_that_find_no_room_are_lost_and_said_so(void **state)
{
    (void)state;
    call_modern("big_in_task", TASKS);
    assert_string_equal(task_status(0), "completed");
    call_modern("big_in_task", TASKS);
    assert_string_equal(task_status(0), "failed");
    principal = "bob";
    call_modern("big_in_task", TASKS);
    assert_string_equal(task_status(0), "completed");
}

static void test_only_tools_that_say_so_become_tasks(void **state)
{
    (void)state;
    call_modern("never_in_task", TASKS);
    assert_string_equal(last_text(), "no task");
}

/* A request whose `member` has nearly 8 MiB, put in as JSON: parsing it would take the time. */
static void send_large(const char *method, const char *name, const char *value, const char *member,
                       json_t *large)
{
    json_t *message = json_pack("{s:s, s:s, s:s, s:{s:s, s:O, s:{s:s, s:{s:{s:{}}, s:{}}}}}",
                                "jsonrpc", "2.0", "id", "1", "method", method, "params", name,
                                value, member, large, "_meta", NS "protocolVersion", "2026-07-28",
                                NS "clientCapabilities", "extensions", NS "tasks", "elicitation");

    assert_non_null(message);
    json_array_append_new(messages, message);
    start_message(NULL, message);
}

static void test_what_tasks_keep_is_bounded_by_principal(void **state)
{
    autofree char   *letters = str_format("%0*d", LARGE, 0);
    autojson json_t *large = json_pack("{s:{s:s}}", "a", "x", letters);
    char            *ids[7];

    (void)state;
    principal = "ann";
    for (size_t i = 0; i < 7; i++) {
        send_large("tools/call", "name", "ask_twice", "arguments", large);
        assert_string_equal(rpc_string(last_result(), "resultType"), "task");
        ids[i] = strdup(rpc_string(last_result(), "taskId"));
    }
    turn_loop();
    send_large("tasks/update", "taskId", ids[0], "inputResponses", large);
    assert_int_equal(last_error(), 0);
    send_large("tasks/update", "taskId", ids[1], "inputResponses", large); /* no room */
    assert_int_equal(last_error(), RPC_INVALID_PARAMS);
    assert_string_equal(rpc_string(get_task(ids[1]), "status"), "input_required");
    json_array_clear(out);
    send_large("tools/call", "name", "wait_in_task", "arguments",
               large); /* runs within its request */
    assert_int_equal(json_array_size(out), 0);
    principal = "bob";
    send_large("tools/call", "name", "wait_in_task", "arguments", large);
    assert_int_equal(json_array_size(out), 1);

    principal = "ann"; /* what ends gives it back */
    for (size_t i = 0; i < 7; i++) {
        autofree char *params = str_format("\"taskId\":\"%s\"", ids[i]);
        send_modern("1", "tasks/cancel", params, TASKS);
        free(ids[i]);
    }
    for (size_t i = 0; i < 7; i++) {
        send_large("tools/call", "name", "wait_in_task", "arguments", large);
        assert_string_equal(rpc_string(last_result(), "resultType"), "task");
    }
}

static void test_capabilities_have_a_size(void **state)
{
    autofree char *large = str_format("\"x\":{\"y\":\"%0*d\"}", 65536, 0);

    (void)state;
    call_modern("never_in_task", large);
    assert_int_equal(last_error(), RPC_INVALID_PARAMS);
    assert_int_equal(status, 400);
}

/* ---- stopping ---- */

static void test_listeners_are_told_of_the_end(void **state)
{
    (void)state;
    send_modern("me", "subscriptions/listen", "\"notifications\":{}", "");
    mcp_server_stop(server);
    assert_int_equal(json_array_size(out), 3);
    assert_string_equal(rpc_string(json_array_get(out, 1), "method"), "notifications/cancelled");
    assert_string_equal(rpc_string(last(), "id"), "me");

    json_array_clear(out);
    on_http = true;
    send_modern("me", "subscriptions/listen", "\"notifications\":{}", "");
    mcp_server_stop(server);
    assert_int_equal(json_array_size(out), 2); /* the stream closes: no need to say it twice */
    assert_string_equal(rpc_string(last_result(), "resultType"), "complete");
}

static void test_subscriptions_have_a_size(void **state)
{
    struct mcp_session *s = begin_session("", "2025-11-25", "");
    int                 taken = 0, id = 1;

    (void)state;
    add_rows();
    for (; id < 100; id++) {
        autofree char *text =
            str_format("{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":"
                       "\"resources/subscribe\",\"params\":{\"uri\":\"%05000d\"}}",
                       id, id);
        send_text(s, text);
        taken += last_error() == 0;
    }
    assert_int_equal(taken, 52); /* of 5,000 bytes each, in 256 KiB */
    mcp_session_free(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_deadline_ends_a_call),
        TEST(test_deadline_goes_on_while_the_client_is_asked),
        TEST(test_deadline_goes_on_after_the_answer),
        TEST(test_patience_with_a_client_ends),
        TEST(test_a_task_has_its_time),
        TEST(test_a_question_while_another_is_open),
        TEST(test_a_question_of_a_task_while_another_is_open),
        TEST(test_a_modern_round_ends_the_call),
        TEST(test_a_refused_question),
        TEST(test_errors_of_the_program_end_it),
        TEST(test_modes_of_elicitation),
        TEST(test_a_need_in_the_legacy_era_is_a_result),
        TEST(test_an_id_in_use_is_refused_without_it),
        TEST(test_the_oldest_revision_is_for_stdio),
        TEST(test_a_batch_on_http_is_no_stdio),
        TEST(test_a_modern_initialize_is_told_the_versions),
        TEST(test_numbers_and_texts_that_json_does_not_know),
        TEST(test_what_each_revision_knows),
        TEST(test_pages_of_what_is_registered_and_what_is_made),
        TEST(test_cursors_of_others_are_refused),
        TEST(test_caching),
        TEST(test_completions_are_cut_and_counted),
        TEST(test_changes_reach_their_principal_only),
        TEST(test_tasks_are_counted_by_principal),
        TEST(test_results_that_find_no_room_are_lost_and_said_so),
        TEST(test_only_tools_that_say_so_become_tasks),
        TEST(test_what_tasks_keep_is_bounded_by_principal),
        TEST(test_capabilities_have_a_size),
        TEST(test_listeners_are_told_of_the_end),
        TEST(test_subscriptions_have_a_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
