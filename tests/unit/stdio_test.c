/* A whole connection on two pipes, with the loop in this thread: what is written to the server is
 * read back as lines. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "mcp/server.h"
#include "transport/stdio.h"

enum { LINE_MAX_BYTES = 8 << 20, WAIT_MS = 20000 };

struct peer {
    struct event_base *base;
    struct mcp_server *server;
    struct stdio      *stdio;
    int                to_fd, from_fd;
    struct buf         got;
    bool               ended;
    int                started, cancelled; /* calls of `hang` */
    struct mcp_call   *hanging;
};

/* ---- the server under test ---- */

static void on_cancelled(struct mcp_call *c)
{
    struct peer *p = mcp_call_context(c);

    p->cancelled++;
    p->hanging = NULL;
}

static void hang(struct mcp_call *c)
{
    struct peer *p = mcp_call_context(c);

    p->started++;
    p->hanging = c;
    mcp_call_on_cancel(c, on_cancelled);
}

static void echo(struct mcp_call *c)
{
    const char *text = json_string_value(json_object_get(mcp_call_arguments(c), "text"));

    mcp_call_text(c, text ? text : "");
    mcp_call_done(c);
}

static const struct mcp_about about = {.name = "test", .version = "0"};
static const struct mcp_tool  tools[] = {
     {.name = "hang", .description = "h", .input_schema = "{\"type\":\"object\"}", .call = hang},
     {.name = "echo", .description = "e", .input_schema = "{\"type\":\"object\"}", .call = echo},
     {0},
};

static void on_ended(void *owner)
{
    struct peer *p = owner;

    assert_false(p->ended);
    p->ended = true;
    event_base_loopbreak(p->base);
}

static int set_up(void **state)
{
    struct peer *p = calloc(1, sizeof *p);
    int          in[2], out[2];

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    p->to_fd = in[1];
    p->from_fd = out[0];
    fd_set_nonblock(p->to_fd, true);
    fd_set_nonblock(p->from_fd, true);
    buf_init(&p->got, 256 << 20);
    p->base = event_base_new();
    p->server = mcp_server_new(p->base, &about, p);
    mcp_server_add_tools(p->server, tools);
    p->stdio = stdio_start(p->server, p->base, in[0], out[1], on_ended, p);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct peer *p = *state;

    stdio_free(p->stdio);
    mcp_server_free(p->server);
    event_base_free(p->base);
    fd_close(&p->to_fd);
    fd_close(&p->from_fd);
    buf_done(&p->got);
    free(p);
    return 0;
}

/* ---- the client ---- */

static void turn(struct peer *p)
{
    event_base_loop(p->base, EVLOOP_NONBLOCK);
}

/* Whether the server took it all, in so many turns of the loop. */
static size_t push(struct peer *p, const char *data, size_t size)
{
    size_t sent = 0;

    for (int idle = 0; sent < size && idle < 50;) {
        ssize_t n = write(p->to_fd, data + sent, size - sent);
        idle = n > 0 ? 0 : idle + 1;
        sent += n > 0 ? (size_t)n : 0;
        turn(p);
    }
    for (int i = 0; i < 5; i++)
        turn(p);
    return sent;
}

static void say(struct peer *p, const char *text)
{
    assert_int_equal(push(p, text, strlen(text)), strlen(text));
}

static void pull(struct peer *p)
{
    uint8_t *to = buf_reserve(&p->got, 1 << 16);
    ssize_t  n = read(p->from_fd, to, 1 << 16);

    if (n > 0)
        p->got.size += (size_t)n;
}

/* The next line, parsed; NULL: none came. The caller releases it. */
static json_t *hear(struct peer *p)
{
    const char *end = NULL;

    for (int i = 0; i < WAIT_MS / 10 && !end; i++) {
        pull(p);
        end = p->got.size > 0 ? memchr(p->got.data, '\n', p->got.size) : NULL;
        if (!end && i > 20)
            return NULL;
        turn(p);
    }
    json_t *j = json_loadb((char *)p->got.data, (size_t)(end - (char *)p->got.data), 0, NULL);
    assert_non_null(j);
    buf_drop(&p->got, (size_t)(end - (char *)p->got.data) + 1);
    return j;
}

static void assert_heard(struct peer *p, const char *text)
{
    autojson json_t *got = hear(p), *wanted = json_loads(text, 0, NULL);

    assert_non_null(wanted);
    if (!got || !json_equal(got, wanted))
        fail_msg("heard %s instead of %s", got ? json_dumps(got, JSON_COMPACT) : "nothing", text);
}

static void assert_error(struct peer *p, int code)
{
    autojson json_t *got = hear(p);

    assert_non_null(got);
    assert_null(json_object_get(got, "id"));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(got, "error"), "code")),
                     code);
}

static void assert_silent(struct peer *p)
{
    assert_null(hear(p));
}

static void initialize(struct peer *p, const char *version)
{
    char text[300];

    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"
             "{\"protocolVersion\":\"%s\",\"capabilities\":{}}}\n",
             version);
    say(p, text);
    autojson json_t *got = hear(p);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(got, "result"), "protocolVersion")),
        version);
}

#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"ping\"}"
#define PONG(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"result\":{}}"
#define CALL(id, tool)                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool   \
    "\"}}"

/* ---- lines ---- */

static void lines(void **state)
{
    struct peer *p = *state;

    say(p, PING(1) "\n\n\r\n  \n" PING(2) "\r\n" PING(3)); /* the third has no end yet */
    assert_heard(p, PONG(1));
    assert_heard(p, PONG(2));
    assert_silent(p);
    say(p, "\n");
    assert_heard(p, PONG(3));
}

static void bad_lines(void **state)
{
    struct peer *p = *state;

    say(p, "{\n[\n\"\xff\"\n" PING(1) " x\n");
    for (int i = 0; i < 4; i++)
        assert_error(p, -32700);
    say(p, "{\"a\":1,\"a\":2}\n{}\n1\nnull\n");
    for (int i = 0; i < 4; i++)
        assert_error(p, -32600);
    assert_int_equal(push(p, "\0\0\n", 3), 3);
    assert_error(p, -32700);
    say(p, PING("x") "\n");
    assert_heard(p, PONG("x"));
}

/* A line of `size` bytes: a ping in blanks. */
static char *padded(size_t size)
{
    static const char ping[] = PING(5);
    char             *text = malloc(size + 2);

    memset(text, ' ', size);
    memcpy(text, ping, strlen(ping) - 1);
    text[size - 1] = '}';
    text[size] = '\n';
    text[size + 1] = '\0';
    return text;
}

static void long_lines(void **state)
{
    struct peer   *p = *state;
    autofree char *longest = padded(LINE_MAX_BYTES), *longer = padded(LINE_MAX_BYTES + 1);
    autofree char *far_longer = padded(3 * LINE_MAX_BYTES);

    say(p, longest);
    assert_heard(p, PONG(5));
    say(p, longer);
    assert_error(p, -32600);
    say(p, far_longer);
    assert_error(p, -32600);
    say(p, PING(6) "\n");
    assert_heard(p, PONG(6));
    assert_silent(p);
}

/* ---- batches ---- */

static void batches(void **state)
{
    struct peer *p = *state;

    say(p, "[" PING(1) "]\n");
    assert_error(p, -32600);
    initialize(p, "2025-03-26");
    say(p, "[" PING(1) ",{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}," PING(2) "]\n");
    assert_heard(p, "[" PONG(1) "," PONG(2) "]");
    say(p, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]\n");
    assert_silent(p);
    say(p, "[]\n");
    assert_error(p, -32600);
    say(p, "[" CALL(3, "hang") "," PING(4) "]\n");
    assert_silent(p);
    mcp_call_done(p->hanging);
    assert_heard(p, "[" PONG(4) ",{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[]}}]");
    say(p, "[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"initialize\"}]\n");
    autojson json_t *got = hear(p);
    assert_non_null(json_object_get(json_array_get(got, 0), "error"));
}

static void no_batches_since_2025_06(void **state)
{
    struct peer *p = *state;

    initialize(p, "2025-06-18");
    say(p, "[" PING(1) "]\n");
    assert_error(p, -32600);
}

/* ---- back-pressure ---- */

static void a_client_that_does_not_read(void **state)
{
    struct peer   *p = *state;
    autofree char *text = malloc(70000);
    size_t         sent = 0, n = 0, size, heard = 0;
    int            head;

    initialize(p, "2025-11-25");
    head = sprintf(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
                         "{\"name\":\"echo\",\"arguments\":{\"text\":\"");
    memset(text + head, 'x', 60000);
    size = (size_t)head + 60000;
    strcpy(text + size, "\"}}}\n");
    size += strlen(text + size);
    do {
        n = push(p, text, size);
        sent += n;
    } while (n == size && sent < (200 << 20));
    /* 1 MiB of answers, 8 MiB of questions, and two pipes: then it waits. */
    assert_true(sent < (12 << 20));
    for (size_t left = size - n; left > 0;) {
        size_t more = push(p, text + size - left, left);
        left -= more;
        pull(p);
    }
    sent += size - n;
    for (json_t *j; heard < sent / size && (j = hear(p)); heard++) {
        assert_non_null(json_object_get(j, "result"));
        json_decref(j);
    }
    assert_int_equal(heard, sent / size);
    assert_false(p->ended);
}

static void many_open_requests(void **state)
{
    struct peer *p = *state;

    initialize(p, "2025-11-25");
    for (int i = 0; i < 300; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{\"name\":"
                 "\"hang\"}}\n",
                 i);
        say(p, text);
    }
    assert_int_equal(p->started, 256);
    for (int i = 0; i < 44; i++) { /* refused, not left lying: what ends one is input too */
        json_t *refusal = hear(p);
        assert_non_null(json_object_get(refusal, "error"));
        json_decref(refusal);
    }
    say(p, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
           "cancelled\",\"params\":{\"requestId\":7}}\n" CALL(1000, "hang") "\n");
    assert_int_equal(p->started, 257);
}

/* ---- the end ---- */

static void wait_for_end(struct peer *p)
{
    struct timeval most = {.tv_sec = 5};

    event_base_loopexit(p->base, &most);
    event_base_dispatch(p->base);
    assert_true(p->ended);
}

static void end_of_input(void **state)
{
    struct peer *p = *state;

    initialize(p, "2025-03-26");
    say(p, CALL(1, "hang") "\n[" CALL(2, "hang") "]\n");
    say(p, PING(3)); /* without a newline: the end of input ends it */
    fd_close(&p->to_fd);
    wait_for_end(p);
    assert_int_equal(p->started, 2);
    assert_int_equal(p->cancelled, 2);
    assert_heard(p, PONG(3));
    assert_silent(p);
}

static void end_of_input_while_the_client_does_not_read(void **state)
{
    struct peer *p = *state;
    size_t       sent;
    char         text[1000];

    initialize(p, "2025-11-25");
    memset(text, 'x', sizeof text);
    memcpy(text, PING(1) "\n{\n", sizeof PING(1) + 2);
    text[sizeof text - 1] = '\n';
    do
        sent = push(p, text, sizeof text);
    while (sent == sizeof text);
    fd_close(&p->to_fd);
    wait_for_end(p); /* after a second, not never */
}

static void broken_output(void **state)
{
    struct peer *p = *state;

    initialize(p, "2025-11-25");
    say(p, CALL(1, "hang") "\n");
    fd_close(&p->from_fd);
    assert_true(write(p->to_fd, PING(2) "\n", sizeof PING(2)) > 0);
    wait_for_end(p);
    assert_int_equal(p->cancelled, 1);
}

static void free_in_the_middle(void **state)
{
    struct peer *p = *state;

    initialize(p, "2025-03-26");
    say(p, CALL(1, "hang") "\n[" CALL(2, "hang") "]\n");
    stdio_free(p->stdio);
    p->stdio = NULL;
    assert_int_equal(p->cancelled, 2);
    assert_false(p->ended);
}

#define LISTEN                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":\"l\",\"method\":\"subscriptions/listen\",\"params\":{"           \
    "\"notifications\":{\"toolsListChanged\":true},\"_meta\":{"                                    \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                  \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n"

/* The answer to a request, whatever came before it. */
static json_t *hear_answer(struct peer *p, const char *id)
{
    for (;;) {
        json_t     *got = hear(p);
        const char *of = json_string_value(json_object_get(got, "id"));
        if (!got || (of && strcmp(of, id) == 0))
            return got;
        json_decref(got);
    }
}

static void stop_lets_requests_finish(void **state)
{
    struct peer *p = *state;
    json_t      *got;

    initialize(p, "2025-11-25");
    say(p, CALL("c", "hang") "\n" LISTEN);
    stdio_stop(p->stdio, 60000);
    got = hear_answer(p, "l");
    assert_non_null(json_object_get(got, "result"));
    json_decref(got);
    say(p, PING("late") "\n");
    got = hear_answer(p, "late");
    assert_non_null(json_object_get(got, "error"));
    json_decref(got);
    assert_false(p->ended);
    stdio_stop(p->stdio, 0); /* the first one counts */
    turn(p);
    assert_false(p->ended);
    mcp_call_done(p->hanging);
    wait_for_end(p);
    assert_int_equal(p->cancelled, 0);
    got = hear_answer(p, "c");
    assert_non_null(json_object_get(got, "result"));
    json_decref(got);
}

static void stop_has_a_deadline(void **state)
{
    struct peer *p = *state;
    json_t      *got;

    initialize(p, "2025-11-25");
    say(p, CALL("c", "hang") "\n");
    stdio_stop(p->stdio, 100);
    wait_for_end(p);
    assert_int_equal(p->cancelled, 1);
    got = hear_answer(p, "c");
    assert_true(json_is_true(json_object_get(json_object_get(got, "result"), "isError")));
    json_decref(got);
    assert_silent(p);
}

static void stop_while_the_client_does_not_read(void **state)
{
    struct peer *p = *state;
    size_t       sent;

    initialize(p, "2025-11-25");
    do
        sent = push(p, PING(1) "\n", sizeof PING(1));
    while (sent == sizeof PING(1));
    stdio_stop(p->stdio, 100);
    wait_for_end(p); /* after a second, not never */
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lines),
        CASE(bad_lines),
        CASE(long_lines),
        CASE(batches),
        CASE(no_batches_since_2025_06),
        CASE(a_client_that_does_not_read),
        CASE(many_open_requests),
        CASE(end_of_input),
        CASE(end_of_input_while_the_client_does_not_read),
        CASE(broken_output),
        CASE(free_in_the_middle),
        CASE(stop_lets_requests_finish),
        CASE(stop_has_a_deadline),
        CASE(stop_while_the_client_does_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
