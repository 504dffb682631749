/* Connections over socket pairs. Requests for /wait are answered when the test says so, those for
 * /large with a megabyte; the time is the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "transport/connections.h"

enum { REQUEST_MS = 10000, LARGE = 1 << 20, CLIENTS_MAX = 64 };

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
    struct event_base *base;
    struct connections all;
    struct connection *waiting[CLIENTS_MAX];
    size_t             n_waiting, gone;
    int                fds[CLIENTS_MAX]; /* the clients' ends */
    size_t             n;
} w;

static void answer(struct connection *c, int status, size_t size)
{
    char  head[64];
    char *body = calloc(1, size + 1);

    memset(body, 'x', size);
    connection_write(c, head,
                     (size_t)snprintf(head, sizeof head,
                                      "HTTP/1.1 %d\r\nContent-Length: %zu\r\n\r\n", status, size));
    connection_write(c, body, size);
    free(body);
    connection_answered(c);
}

static bool on_head(void *owner, struct connection *c)
{
    (void)owner;
    if (strcmp(connection_head(c)->path, "/refused") != 0)
        return true;
    answer(c, 403, 0);
    return false;
}

static void on_gone(void *arg)
{
    (void)arg;
    w.gone++;
}

static void on_request(void *owner, struct connection *c)
{
    const char *path = connection_head(c)->path;

    (void)owner;
    if (strcmp(path, "/wait") == 0) {
        w.waiting[w.n_waiting++] = c;
        connection_watch(c, on_gone, c);
    } else {
        answer(c, 200, strcmp(path, "/large") == 0 ? LARGE : 2);
    }
}

static void on_refuse(void *owner, struct connection *c, int status, const char *why)
{
    (void)owner;
    (void)why;
    answer(c, status, 0);
}

static void on_quiet(void *owner)
{
    (void)owner;
}

static const struct connection_ops ops = {
    .head = on_head, .request = on_request, .refuse = on_refuse, .quiet = on_quiet};

static int set_up(void **state)
{
    (void)state;
    w = (struct world){.base = event_base_new()};
    connections_init(&w.all, w.base, REQUEST_MS, &ops, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    connections_done(&w.all);
    assert_int_equal(w.all.input, 0);
    assert_int_equal(w.all.output, 0);
    for (size_t i = 0; i < w.n; i++)
        fd_close(&w.fds[i]);
    event_base_free(w.base);
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
        connections_tick(&w.all);
        turn();
    }
}

static int client(void)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    connections_add(&w.all, ends[0]);
    return w.fds[w.n++] = ends[1];
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    turn();
}

/* What came, up to a maximum; "": nothing; NULL: the connection is over. */
static const char *hear(int fd, size_t max)
{
    static char got[2 * LARGE];
    size_t      size = 0;
    ssize_t     n = -1;

    while (size < max && (n = read(fd, got + size, max - size)) > 0) {
        size += (size_t)n;
        turn();
    }
    got[size] = '\0';
    return n == 0 && size == 0 ? NULL : got;
}

static const char *hear_all(int fd)
{
    return hear(fd, 2 * LARGE - 1);
}

#define ASK(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define OK "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nxx"

/* ---- */

static void answers_in_their_order(void **state)
{
    int fd = client();

    (void)state;
    say(fd, ASK("/") ASK("/refused") ASK("/wait") ASK("/"));
    assert_string_equal(hear_all(fd), OK "HTTP/1.1 403\r\nContent-Length: 0\r\n\r\n");
    answer(w.waiting[0], 201, 0);
    turn();
    assert_string_equal(hear_all(fd), "HTTP/1.1 201\r\nContent-Length: 0\r\n\r\n" OK);
    say(fd, "nonsense\r\n\r\n");
    assert_string_equal(hear_all(fd), "HTTP/1.1 400\r\nContent-Length: 0\r\n\r\n");
    assert_null(hear_all(fd));
}

static void who_leaves_is_told_of_once(void **state)
{
    int left = client(), other = client();

    (void)state;
    say(left, ASK("/wait"));
    say(other, ASK("/wait"));
    assert_true(connections_are_busy(&w.all));
    close(left);
    w.fds[0] = -1;
    turn();
    assert_int_equal(w.gone, 1);
    assert_int_equal(w.all.n, 1);
    answer(w.waiting[1], 200, 2);
    turn();
    assert_string_equal(hear_all(other), OK);
    assert_false(connections_are_busy(&w.all));
    assert_int_equal(w.gone, 1);
}

/* What was begun has a minute, unless the operator says otherwise; nobody else is kept from asking.
 */
static void half_a_request_has_a_minute(void **state)
{
    static const char *const halves[] = {
        "GET /", "GET / HTTP/1.1\r\nHost: x\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx"};
    int fds[3], other;

    (void)state;
    connections_done(&w.all);
    connections_init(&w.all, w.base, 0, &ops, NULL);
    for (size_t i = 0; i < 3; i++) {
        fds[i] = client();
        say(fds[i], halves[i]);
    }
    pass(59);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(hear_all(fds[i]), "");
    other = client();
    say(other, ASK("/"));
    assert_string_equal(hear_all(other), OK);
    pass(2);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(hear_all(fds[i]), "HTTP/1.1 408\r\nContent-Length: 0\r\n\r\n");
        assert_null(hear_all(fds[i]));
    }
    say(other, ASK("/"));
    assert_string_equal(hear_all(other), OK);
}

/* ---- the sum of what was read ---- */

static void pipeline(int fd)
{
    static char junk[60 << 10];

    memset(junk, 'x', sizeof junk);
    assert_int_equal(write(fd, junk, sizeof junk), sizeof junk);
    turn();
}

static void what_is_pipelined_is_bounded_together(void **state)
{
    size_t half = w.all.input_max = 1 << 20;
    int    fd;

    (void)state;
    half /= 2;
    for (int i = 0; i < 40; i++) {
        fd = client();
        say(fd, ASK("/wait"));
        pipeline(fd);
    }
    assert_in_range(w.all.input, half / 2, half + (128 << 10));
    for (int i = 0; i < 40; i++)
        assert_string_equal(hear_all(w.fds[i]), ""); /* nobody was refused: it waits */
    assert_int_equal(w.gone, 0);

    fd = client(); /* and whoever comes is answered once */
    say(fd, ASK("/"));
    assert_string_equal(hear_all(fd), OK);
    assert_string_equal(hear_all(fd), "");
    say(fd, ASK("/"));
    assert_string_equal(hear_all(fd), OK);
}

static void who_leaves_is_noticed_then_too(void **state)
{
    int fd;

    (void)state;
    for (int i = 0; i < 3; i++)
        say(client(), ASK("/wait"));
    pipeline(w.fds[0]);
    w.all.input_max = 1000;
    shutdown(w.fds[1], SHUT_WR);
    turn();
    assert_int_equal(w.gone, 1);

    fd = w.fds[2]; /* what it says now is taken when its turn has come */
    say(fd, ASK("/"));
    assert_string_equal(hear_all(fd), "");
    answer(w.waiting[2], 200, 2);
    turn();
    assert_string_equal(hear_all(fd), OK OK);
}

static void a_request_that_comes_is_refused(void **state)
{
    int half = client(), fd = client();

    (void)state;
    w.all.input_max = 100 << 10;
    say(fd, ASK("/wait"));
    say(half, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n");
    assert_string_equal(hear_all(half), "");
    pipeline(half);
    pipeline(half);
    assert_string_equal(hear_all(half), "HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(w.all.counts.heavy, 1);
    assert_in_range(w.all.input, 0, 8 << 10);
}

/* Who does not read what he asked for has to go, and not who comes after him and reads. */
static void what_nobody_reads_makes_room(void **state)
{
    int    slow = client(), reads = client();
    size_t read = 0;

    (void)state;
    w.all.output_max = 5 << 20;
    say(slow, ASK("/large") ASK("/large") ASK("/large"));
    assert_int_equal(w.all.n, 2);
    w.all.output_max = w.all.output + LARGE / 2;
    say(reads, ASK("/large"));
    assert_int_equal(w.all.counts.heavy, 1);
    assert_in_range(w.all.output, 0, 2 * LARGE);
    for (size_t n = 1; n > 0; read += n)
        n = strlen(hear(reads, 300000));
    assert_in_range(read, LARGE, LARGE + 100);
    assert_int_equal(w.all.n, 1);
    say(reads, ASK("/"));
    assert_string_equal(hear_all(reads), OK);
}

/* ---- time ---- */

static void a_request_has_its_time(void **state)
{
    int fd = client();

    (void)state;
    pass(59);
    say(fd, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n12");
    pass(9);
    assert_string_equal(hear_all(fd), "");
    say(fd, "34");
    assert_string_equal(hear_all(fd), OK);
    say(fd, "GET");
    pass(11);
    assert_string_equal(hear_all(fd), "HTTP/1.1 408\r\nContent-Length: 0\r\n\r\n");
    assert_null(hear_all(fd));
    assert_int_equal(w.all.counts.slow, 1);
}

static void empty_lines_do_not_stretch_it(void **state)
{
    int fd = client();

    (void)state;
    for (int i = 0; i < 15; i++) {
        if (send(fd, "\r\n", 2, MSG_NOSIGNAL) < 0)
            break;
        turn();
        pass(1);
    }
    assert_null(hear_all(fd));
}

static void reading_slowly_does_not_stretch_it(void **state)
{
    int fd = client();

    (void)state;
    say(fd, ASK("/large") "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n1");
    for (int i = 0; i < 9; i++) {
        assert_true(strlen(hear(fd, 30000)) > 0);
        pass(1);
    }
    assert_int_equal(w.all.n, 1);
    pass(2);
    assert_int_equal(w.all.n, 0);
}

static void who_reads_slowly_is_waited_for(void **state)
{
    int fd = client();

    (void)state;
    say(fd, ASK("/large"));
    for (int i = 0; i < 3; i++) { /* nearly all that the kernel holds: then it takes more */
        assert_true(strlen(hear(fd, 200000)) > 0);
        pass(50);
    }
    assert_int_equal(w.all.n, 1);
    pass(61);
    assert_int_equal(w.all.n, 0);
}

static void who_does_not_read_is_not(void **state)
{
    int fd = client();

    (void)state;
    say(fd, ASK("/large"));
    pass(30);
    say(fd, ASK("/")); /* this buys no time */
    pass(20);
    say(fd, ASK("/wait"));
    pass(8);
    assert_int_equal(w.all.n, 1);
    pass(3);
    assert_int_equal(w.all.n, 0);
    assert_int_equal(w.gone, 1);
}

static void who_says_nothing_is_closed(void **state)
{
    int fd = client(), waits = client();

    (void)state;
    say(waits, ASK("/wait"));
    say(fd, ASK("/"));
    assert_string_equal(hear_all(fd), OK);
    pass(59);
    assert_string_equal(hear_all(fd), "");
    pass(2);
    assert_null(hear_all(fd));
    pass(3600);
    assert_string_equal(hear_all(waits), ""); /* an answer has no time of ours */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_in_their_order),         TEST(who_leaves_is_told_of_once),
        TEST(half_a_request_has_a_minute),    TEST(what_is_pipelined_is_bounded_together),
        TEST(who_leaves_is_noticed_then_too), TEST(a_request_that_comes_is_refused),
        TEST(what_nobody_reads_makes_room),   TEST(a_request_has_its_time),
        TEST(empty_lines_do_not_stretch_it),  TEST(reading_slowly_does_not_stretch_it),
        TEST(who_reads_slowly_is_waited_for), TEST(who_does_not_read_is_not),
        TEST(who_says_nothing_is_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
