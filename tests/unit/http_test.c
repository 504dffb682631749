/* The HTTP server in this process, on a unix socket, with raw clients. The time is the test's own,
 * that of the loop too: an hour passes in a moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "transport/http.h"

enum { CLIENTS_MAX = 300, CALLS_MAX = 600, GOT_MAX = 1 << 20 };

int __real_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

static int64_t ahead_s;

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
    int r = __real_clock_gettime(id, ret);

    ret->tv_sec += ahead_s;
    return r;
}

/* ---- the server ---- */

static struct world {
    struct event_base  *base;
    struct mcp_server  *server;
    struct http_server *http;
    char                path[64], tokens[64];
    int                 fds[CLIENTS_MAX];
    size_t              n;
    struct mcp_call    *calls[CALLS_MAX]; /* of `hang` and `group` that are open */
    size_t              n_calls;
    int                 cancelled, stopped;
} w;

static struct mcp_call *forget_call(size_t i)
{
    struct mcp_call *c = w.calls[i];

    w.calls[i] = w.calls[--w.n_calls];
    return c;
}

static void on_cancel(struct mcp_call *c)
{
    w.cancelled++;
    for (size_t i = 0; i < w.n_calls; i++)
        if (w.calls[i] == c)
            forget_call(i);
}

static void hang(struct mcp_call *c)
{
    assert_true(w.n_calls < CALLS_MAX);
    w.calls[w.n_calls++] = c;
    mcp_call_on_cancel(c, on_cancel);
}

/* Calls of a group end together. */
static void on_group_cancel(struct mcp_call *c)
{
    on_cancel(c);
    while (w.n_calls > 0) {
        struct mcp_call *other = forget_call(0);

        mcp_call_on_cancel(other, NULL);
        mcp_call_fail(other, "its group was cancelled");
    }
}

static void group(struct mcp_call *c)
{
    hang(c);
    mcp_call_on_cancel(c, on_group_cancel);
}

static const struct mcp_about about = {.name = "test", .version = "0"};
static const struct mcp_tool  tools[] = {
     {.name = "hang", .description = "h", .input_schema = "{\"type\":\"object\"}", .call = hang},
     {.name = "group", .description = "g", .input_schema = "{\"type\":\"object\"}", .call = group},
     {0},
};

static void start(void)
{
    autofree char      *address = str_format("unix:%s", w.path);
    struct http_options o = {.address = address, .tokens_file = w.tokens[0] ? w.tokens : NULL};
    struct err          e = {0};

    w.http = http_start(w.server, w.base, &o, &e);
    if (!w.http)
        fail_msg("%s", e.msg);
}

static int set_up(void **state)
{
    (void)state;
    w = (struct world){.base = event_base_new()};
    snprintf(w.path, sizeof w.path, "/tmp/http-test-%d", (int)getpid());
    w.server = mcp_server_new(w.base, &about, NULL);
    mcp_server_add_tools(w.server, tools);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_free(w.http);
    mcp_server_free(w.server);
    event_base_free(w.base);
    for (size_t i = 0; i < w.n; i++)
        fd_close(&w.fds[i]);
    if (w.tokens[0])
        unlink(w.tokens);
    assert_int_equal(access(w.path, F_OK), -1);
    return 0;
}

/* ---- the clients ---- */

static void turn(void)
{
    for (int i = 0; i < 8; i++)
        event_base_loop(w.base, EVLOOP_NONBLOCK);
}

static void pass(int seconds)
{
    for (int i = 0; i < seconds; i++) {
        ahead_s++;
        event_base_loop(w.base, EVLOOP_NONBLOCK);
    }
    turn();
}

static int client(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    str_copy(to.sun_path, sizeof to.sun_path, w.path);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_true(w.n < CLIENTS_MAX);
    return w.fds[w.n++] = fd;
}

/* What came since; "" also when the connection is over. */
static const char *hear(int fd)
{
    static char got[GOT_MAX];
    size_t      size = 0;
    ssize_t     n;

    turn();
    while ((n = read(fd, got + size, sizeof got - 1 - size)) > 0) {
        size += (size_t)n;
        turn();
    }
    got[size] = '\0';
    return got;
}

static bool is_over(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK) == 0;
}

static void say(int fd, const char *method, const char *headers, const char *body)
{
    autofree char *text =
        str_format("%s /mcp HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s", method,
                   headers, strlen(body), body);
    size_t size = strlen(text);

    assert_int_equal(write(fd, text, size), size);
    turn();
}

#define assert_has(text, part)                                                                     \
    do {                                                                                           \
        const char *in = (text);                                                                   \
        if (!strstr(in, part))                                                                     \
            fail_msg("'%s' is not in '%s'", part, in);                                             \
    } while (0)

#define CALL(id, name)                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name   \
    "\"}}"

/* ---- modern ---- */

static int call_modern(const char *name)
{
    static const char meta[] = "{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
                               "\"io.modelcontextprotocol/clientCapabilities\":{}}";
    autofree char    *headers = str_format("MCP-Protocol-Version: 2026-07-28\r\n"
                                              "Mcp-Method: tools/call\r\nMcp-Name: %s\r\n",
                                           name);
    autofree char    *body = str_format("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
                                           "\"params\":{\"name\":\"%s\",\"_meta\":%s}}",
                                        name, meta);
    int               fd = client();

    say(fd, "POST", headers, body);
    return fd;
}

static void on_stopped(void *owner)
{
    (void)owner;
    w.stopped++;
}

/* A stop cancels calls, and the first that is told ends the others. */
static void calls_that_end_each_other(void **state)
{
    int fds[3];

    (void)state;
    start();
    for (int i = 0; i < 3; i++)
        fds[i] = call_modern("group");
    assert_int_equal(w.n_calls, 3);
    http_stop(w.http, 1000, on_stopped, NULL);
    turn();
    assert_int_equal(w.stopped, 0);
    pass(2);
    assert_int_equal(w.stopped, 1);
    assert_int_equal(w.cancelled, 1);
    assert_int_equal(w.n_calls, 0);
    for (int i = 0; i < 3; i++)
        assert_has(hear(fds[i]), "0\r\n\r\n"); /* each stream has its end */
}

static void and_without_a_stop(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 3; i++)
        call_modern("group");
    http_free(w.http);
    w.http = NULL;
    assert_int_equal(w.cancelled, 1);
    assert_int_equal(w.n_calls, 0);
}

static void a_lost_connection_cancels(void **state)
{
    int fd, other;

    (void)state;
    start();
    fd = call_modern("hang");
    other = call_modern("hang");
    assert_has(hear(fd), "text/event-stream");
    shutdown(fd, SHUT_RDWR);
    turn();
    assert_int_equal(w.cancelled, 1);
    mcp_call_done(forget_call(0));
    assert_has(hear(other), "\"result\"");
}

/* So that nobody on the way takes the stream for dead. */
static void a_stream_has_a_heartbeat(void **state)
{
    int fd, kept;

    (void)state;
    start();
    fd = call_modern("hang");
    kept = client();
    say(kept, "GET", "", "");
    assert_has(hear(kept), "405");
    assert_has(hear(fd), "text/event-stream");
    pass(10);
    assert_string_equal(hear(fd), "");
    pass(6);
    assert_string_equal(hear(fd), "3\r\n:\n\n\r\n");
    pass(15);
    assert_string_equal(hear(fd), "3\r\n:\n\n\r\n");
    assert_string_equal(hear(kept), "");
}

/* ---- legacy ---- */

/* The headers of a new session's requests; the caller frees. */
static char *open_session(const char *version, const char *headers)
{
    static const char name[] = "Mcp-Session-Id: ";
    autofree char    *body = str_format(
           "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
              "\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
           version);
    int         fd = client();
    const char *answer, *id;

    say(fd, "POST", headers, body);
    answer = hear(fd);
    assert_has(answer, "200 OK");
    id = strstr(answer, name);
    assert_non_null(id);
    return str_format("%.*s\r\nMCP-Protocol-Version: %s\r\n%s", (int)strlen(name) + 32, id, version,
                      headers);
}

static const char *post(const char *headers, const char *body)
{
    int fd = client();

    say(fd, "POST", headers, body);
    return hear(fd);
}

/* Of n calls, with ids from `first`. */
static char *batch_of(size_t n, size_t first)
{
    static const char one[] = "%c{\"jsonrpc\":\"2.0\",\"id\":%zu,\"method\":\"tools/call\","
                              "\"params\":{\"name\":\"hang\"}}";
    char             *text = malloc(n * (sizeof one + 10) + 2), *at = text;

    for (size_t i = 0; i < n; i++)
        at += sprintf(at, one, i ? ',' : '[', first + i);
    strcpy(at, "]");
    return text;
}

static void a_session_has_so_many_open_requests(void **state)
{
    autofree char *session = NULL, *most = batch_of(250, 1), *six = batch_of(6, 251),
                  *seven = batch_of(7, 251), *too_many = batch_of(257, 1);

    (void)state;
    start();
    session = open_session("2025-03-26", "");
    assert_has(post(session, too_many), "400 Bad Request");
    assert_has(post(session, most), "text/event-stream");
    assert_int_equal(w.n_calls, 250);
    assert_has(post(session, seven), "429 Too Many");
    assert_has(post(session, six), "text/event-stream");
    assert_has(post(session, CALL(257, "hang")), "429 Too Many");
    assert_has(post(session, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"),
               "202 Accepted");
    assert_int_equal(w.n_calls, 256);
}

static void an_idle_session_is_forgotten(void **state)
{
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    autofree char    *idle = NULL, *listens = NULL, *get = NULL;
    int               fd;

    (void)state;
    start();
    idle = open_session("2025-11-25", "");
    listens = open_session("2025-11-25", "");
    fd = client();
    get = str_format("%sAccept: text/event-stream\r\n", listens);
    say(fd, "GET", get, "");
    assert_has(hear(fd), "200 OK");
    pass(3500);
    hear(fd); /* heartbeats that are not read would end it */
    assert_has(post(idle, ping), "200 OK");
    pass(3500);
    hear(fd); /* heartbeats that are not read would end it */
    assert_has(post(idle, ping), "200 OK");
    pass(3700);
    assert_has(post(idle, ping), "404 Not Found");
    assert_has(post(listens, ping), "200 OK");
}

static void an_ended_stream_is_kept_for_five_minutes(void **state)
{
    autofree char *session = NULL, *resume = NULL;
    char           id[32] = "";
    int            fd;

    (void)state;
    start();
    session = open_session("2025-11-25", "");
    assert_int_equal(sscanf(strstr(post(session, CALL(1, "hang")), "id: "), "id: %31[0-9-]", id),
                     1);
    mcp_call_done(forget_call(0));
    resume = str_format("%sAccept: text/event-stream\r\nLast-Event-ID: %s\r\n", session, id);
    pass(280);
    fd = client();
    say(fd, "GET", resume, "");
    assert_has(hear(fd), "\"id\":1,\"result\"");
    pass(40);
    fd = client();
    say(fd, "GET", resume, "");
    assert_has(hear(fd), "400 Bad Request");
}

/* ---- who may ask ---- */

static void start_with_tokens(const char *text)
{
    snprintf(w.tokens, sizeof w.tokens, "/tmp/http-test-%d.tokens", (int)getpid());
    assert_int_equal(file_write_text(AT_FDCWD, w.tokens, text, NULL), 0);
    assert_int_equal(chmod(w.tokens, 0600), 0);
    start();
}

static void tokens_are_asked_for(void **state)
{
    static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    autofree char    *session = NULL;
    const char       *answer;
    int               fd;

    (void)state;
    start_with_tokens("ann token-a-0123456789\n");
    answer = post("", ping);
    assert_has(answer, "HTTP/1.1 401 Unauthorized\r\n");
    assert_has(answer, "\r\nWWW-Authenticate: Bearer realm=\"mcp\"\r\n");
    answer = post("Authorization: Basic YTpi\r\n", ping);
    assert_has(answer, "\r\nWWW-Authenticate: Bearer realm=\"mcp\"\r\n");
    answer = post("Authorization: Bearer token-b-0123456789\r\n", ping);
    assert_has(answer, "HTTP/1.1 401 Unauthorized\r\n");
    assert_has(answer, "\r\nWWW-Authenticate: Bearer realm=\"mcp\", error=\"invalid_token\"\r\n");
    session = open_session("2025-11-25", "Authorization: Bearer token-a-0123456789\r\n");
    assert_has(post(session, ping), "200 OK");
    fd = client(); /* refused with a body to come, it is closed */
    say(fd, "POST", "", ping);
    assert_has(hear(fd), "Connection: close");
    assert_true(is_over(fd));
}

/* Whose fault it is that there are too many sessions: 429 is the client's, 503 is not. */
static void sessions_run_out(void **state)
{
    static const char body[] =
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
        "\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}";
    char text[600] = "", headers[80];

    (void)state;
    for (int i = 0; i < 11; i++)
        sprintf(text + strlen(text), "p%d token-%016d\n", i, i);
    start_with_tokens(text);
    for (int i = 0; i < 10; i++) {
        int fd = client();

        sprintf(headers, "Authorization: Bearer token-%016d\r\n", i);
        for (int k = 0; k < 1000; k++) {
            say(fd, "POST", headers, body);
            assert_has(hear(fd), "200 OK");
        }
        say(fd, "POST", headers, body);
        assert_has(hear(fd), "429 Too Many Requests");
    }
    sprintf(headers, "Authorization: Bearer token-%016d\r\n", 10);
    assert_has(post(headers, body), "503 Service Unavailable");
}

static void a_unix_socket_is_the_owners(void **state)
{
    struct stat st;
    int         fd;

    (void)state;
    start();
    assert_int_equal(strncmp(http_url(w.http), "unix:/tmp/", 10), 0);
    assert_int_equal(stat(w.path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    fd = client();
    assert_int_equal(write(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 43), 43);
    assert_has(hear(fd), "\r\n\r\nok\n");
    http_stop(w.http, 0, on_stopped, NULL);
    assert_int_equal(access(w.path, F_OK), -1);
    turn();
    assert_int_equal(w.stopped, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_that_end_each_other),
        TEST(and_without_a_stop),
        TEST(a_lost_connection_cancels),
        TEST(a_stream_has_a_heartbeat),
        TEST(a_session_has_so_many_open_requests),
        TEST(an_idle_session_is_forgotten),
        TEST(an_ended_stream_is_kept_for_five_minutes),
        TEST(tokens_are_asked_for),
        TEST(sessions_run_out),
        TEST(a_unix_socket_is_the_owners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
