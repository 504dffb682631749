/* The inside half of egress as a whole: the jail's rules, the real init, and a server of the test's
 * own at the other end of the pipe. Each test is a child in namespaces of its own; what code in a
 * sandbox would do is done by that child. argv[1] is jerboa-init. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/egress.h"
#include "pipe/ports.h"
#include "programs/inside.h"

enum { SECONDS = 30, MS = 5000, SHORT_MS = 50 };

static const char   *init_path;
static struct inside init;

static void (*in_the_sandbox)(void);

static void with_init(void)
{
    inside_redirect();
    inside_start(&init, init_path, "egress");
    in_the_sandbox();
    inside_end(&init);
}

static void in_a_sandbox(void (*test)(void))
{
    in_the_sandbox = test;
    assert_int_equal(inside_run(with_init, SECONDS, init_path), 0);
}

/* ---- in the child ---- */

static uint32_t expect_connect(const char *text, uint16_t port)
{
    struct frame           f;
    struct message_connect m;
    union address          a = {0};
    static const uint8_t   mapped[12] = {[10] = 0xff, 0xff};

    CHECK(inside_next(&init, MS, &f) && f.type == FRAME_CONNECT);
    CHECK(message_unpack_connect(&f, &m, NULL) == 0);
    if (memcmp(m.address, mapped, sizeof mapped) == 0) {
        a.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(m.port)};
        memcpy(&a.v4.sin_addr, m.address + 12, 4);
    } else {
        a.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(m.port)};
        memcpy(&a.v6.sin6_addr, m.address, 16);
    }
    address_check(&a, text, port);
    return f.channel;
}

static void expect(enum frame_type type, uint32_t channel, uint8_t stream)
{
    struct frame f;

    CHECK(inside_next(&init, MS, &f) && f.type == type && f.channel == channel &&
          f.stream == stream);
}

static void expect_nothing(void)
{
    struct frame f;

    CHECK(!inside_next(&init, SHORT_MS, &f));
}

static void connections(void)
{
    static const char *const hosts[] = {"93.184.215.14", "10.0.0.1", "2606:2800::1", "fd00::1"};
    char                     bytes[20];

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        autofd int fd = -1;
        CHECK(connecting(hosts[i], 443, &fd) == 0);
        uint32_t id = expect_connect(hosts[i], 443);

        CHECK(write(fd, "request", 7) == 7);
        expect(FRAME_DATA, id, STREAM_OUT);
        shutdown(fd, SHUT_WR);
        expect(FRAME_END, id, STREAM_OUT);
        inside_send(&init, FRAME_DATA, id, STREAM_IN, "answer", 6);
        CHECK(read(fd, bytes, sizeof bytes) == 6);
        inside_send(&init, FRAME_END, id, STREAM_IN, NULL, 0);
        CHECK(read(fd, bytes, sizeof bytes) == 0);
        fd_close(&fd);

        CHECK(connecting(hosts[i], 80, &fd) == 0);
        inside_send(&init, FRAME_RESET, expect_connect(hosts[i], 80), 0, NULL, 0);
        CHECK(read(fd, bytes, sizeof bytes) < 0 && errno == ECONNRESET);
    }
    expect_nothing();
}

static void connections_arrive_with_their_destination(void **state)
{
    (void)state;
    in_a_sandbox(connections);
}

static void queries(void)
{
    static const char *const servers[] = {"9.9.9.9", "127.0.0.1", "2620:fe::fe", "::1"};
    char                     bytes[40];

    for (size_t i = 0; i < sizeof servers / sizeof servers[0]; i++) {
        autofd int    fd = -1;
        struct frame  f;
        union address from = {0};
        socklen_t     size = sizeof from;

        CHECK(sending(servers[i], 53, &fd) == 0);
        CHECK(inside_next(&init, MS, &f) && f.type == FRAME_LOOKUP && f.size == 19);
        CHECK(memcmp(f.payload, "query of some bytes", 19) == 0);
        inside_send(&init, FRAME_FOUND, f.channel, 0, "answer of some bytes", 20);
        CHECK(recvfrom(fd, bytes, sizeof bytes, 0, &from.any, &size) == 20);
        address_check(&from, servers[i], 53);
    }
}

static void queries_are_answered_by_whom_was_asked(void **state)
{
    (void)state;
    in_a_sandbox(queries);
}

static void doors(void)
{
    static const struct {
        const char *text;
        int         type;
        uint16_t    port;
    } taken[] = {
        {"127.0.0.1", SOCK_STREAM, PORT_CONNECTIONS},
        {"0.0.0.0", SOCK_STREAM, PORT_CONNECTIONS},
        {"::1", SOCK_STREAM, PORT_CONNECTIONS},
        {"::", SOCK_STREAM, PORT_CONNECTIONS},
        {"127.0.0.1", SOCK_DGRAM, PORT_LOOKUPS},
        {"0.0.0.0", SOCK_DGRAM, PORT_LOOKUPS},
        {"::1", SOCK_DGRAM, PORT_LOOKUPS},
        {"::", SOCK_DGRAM, PORT_LOOKUPS},
    };
    static const char *const own[] = {"127.0.0.1", "::1"};
    int                      on = 1, fd;
    char                     byte;

    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        union address a = address_of(taken[i].text, taken[i].port);
        CHECK((fd = socket(a.any.sa_family, taken[i].type | SOCK_CLOEXEC, 0)) >= 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        int r = bind(fd, &a.any, address_size(&a));
        /* a TCP port may be bound beside a listener, but then not listened on */
        if (r == 0 && taken[i].type == SOCK_STREAM)
            r = listen(fd, 1);
        CHECK(r < 0 && errno == EADDRINUSE);
        close(fd);
    }
    for (size_t i = 0; i < 2; i++) {
        CHECK(connecting(own[i], PORT_CONNECTIONS, &fd) == 0);
        CHECK(read(fd, &byte, 1) < 0 && errno == ECONNRESET);
        close(fd);
    }
    expect_nothing();
}

static void the_doors_are_inits_alone(void **state)
{
    (void)state;
    in_a_sandbox(doors);
}

/* KiB that init has resident. */
static long resident(void)
{
    char           path[60];
    autofree char *text = NULL;
    const char    *at;

    snprintf(path, sizeof path, "/proc/%d/status", (int)init.pid);
    CHECK(file_read_text(AT_FDCWD, path, 1 << 16, &text, NULL) == 0);
    CHECK((at = strstr(text, "RssAnon:")));
    return strtol(at + 8, NULL, 10);
}

/* Until init has handled all that was sent: it answers in order, and this is refused. Before that
 * only frames of one type may come. */
static void settle(enum frame_type may_come)
{
    static uint32_t    channel;
    autobuf struct buf b;
    struct frame       f;

    buf_init(&b, 100);
    message_pack_write_file(&b, &(struct message_write_file){0644, "/nowhere/x"});
    inside_send(&init, FRAME_WRITE_FILE, ++channel, 0, b.data, b.size);
    do
        CHECK(inside_next(&init, MS, &f) && (f.type == may_come || f.channel == channel));
    while (f.channel != channel);
}

enum { CROWD = EGRESS_CONNECTIONS_MAX + 20 };

/* The server sends as much as it may, code reads nothing: the windows of all are full. */
static void fill_windows(uint32_t first)
{
    static uint8_t  bytes[FRAME_DATA_MAX];
    static uint32_t credit[EGRESS_CONNECTIONS_MAX];
    struct frame    f;
    uint32_t        v;

    for (uint32_t i = 0; i < EGRESS_CONNECTIONS_MAX; i++)
        credit[i] = WINDOW_CONNECTION;
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < EGRESS_CONNECTIONS_MAX; i++)
            for (uint32_t n; credit[i] > 0; credit[i] -= n) {
                n = credit[i] < FRAME_DATA_MAX ? credit[i] : FRAME_DATA_MAX;
                inside_send(&init, FRAME_DATA, first + i, STREAM_IN, bytes, n);
            }
        while (inside_next(&init, any ? 0 : 500, &f)) {
            CHECK(f.type == FRAME_CREDIT && message_unpack_u32(&f, &v, NULL) == 0);
            credit[f.channel - first] += v;
            any = true;
        }
    }
}

static void crowd(void)
{
    long     idle = resident(), full;
    int      fds[CROWD], small = 4096;
    uint32_t first = 0;
    char     byte;

    CHECK(idle <= 512);
    for (int i = 0; i < CROWD; i++) {
        union address a = address_of("93.184.215.14", 443);
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(fds[i] >= 0);
        setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        CHECK(connect(fds[i], &a.any, address_size(&a)) == 0);
        if (i < EGRESS_CONNECTIONS_MAX) {
            uint32_t id = expect_connect("93.184.215.14", 443);
            first = i == 0 ? id : first;
        } else {
            CHECK(read(fds[i], &byte, 1) < 0 && errno == ECONNRESET);
        }
    }
    fill_windows(first);
    full = resident();
    for (uint32_t i = 0; i < EGRESS_CONNECTIONS_MAX; i++)
        inside_send(&init, FRAME_RESET, first + i, 0, NULL, 0);
    settle(FRAME_CREDIT); /* the kernel may have taken a little more meanwhile */
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
    settle(FRAME_ERROR);
    CHECK(connecting("93.184.215.14", 80, &fds[0]) == 0); /* all places are free again */
    expect_connect("93.184.215.14", 80);
    fprintf(stderr, "anonymous memory of init: %ld KiB idle, %ld with full windows, %ld after\n",
            idle, full, resident());
    CHECK(full > 40 << 10); /* it was real */
    CHECK(full <=
          100 << 10); /* the windows, and what malloc adds; below INIT_MEMORY of the engine */
    CHECK(resident() <= 2048);
}

static void a_crowd_is_bounded(void **state)
{
    struct rlimit before, many;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    many = (struct rlimit){2048, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &many), 0);
    in_a_sandbox(crowd);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void dial(uint32_t channel, uint16_t port)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    message_pack_dial(&b, &(struct message_dial){port});
    inside_send(&init, FRAME_DIAL, channel, 0, b.data, b.size);
}

/* The rules send what init itself dials nowhere else. */
static void dialling(void)
{
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    char                     bytes[20];
    struct frame             f;

    for (uint32_t i = 0; i < 2; i++) {
        autofd int server = listener(hosts[i], (uint16_t)(3000 + i)), fd = -1;

        dial(i + 1, (uint16_t)(3000 + i));
        expect(FRAME_STARTED, i + 1, 0);
        CHECK((fd = accept4(server, NULL, NULL, SOCK_CLOEXEC)) >= 0);
        inside_send(&init, FRAME_DATA, i + 1, STREAM_IN, "request", 7);
        CHECK(read(fd, bytes, sizeof bytes) == 7);
        CHECK(write(fd, "answer", 6) == 6);
        expect(FRAME_DATA, i + 1, STREAM_OUT);
        inside_send(&init, FRAME_END, i + 1, STREAM_IN, NULL, 0);
        CHECK(read(fd, bytes, sizeof bytes) == 0);
        fd_close(&fd);
        expect(FRAME_END, i + 1, STREAM_OUT);
    }
    dial(9, 3999);
    expect(FRAME_ERROR, 9, 0);
    dial(9, PORT_CONNECTIONS); /* init's own door: it resets itself, before or after it noticed */
    CHECK(inside_next(&init, MS, &f) && f.channel == 9);
    if (f.type == FRAME_STARTED)
        expect(FRAME_RESET, 9, 0);
    else
        CHECK(f.type == FRAME_ERROR);
    expect_nothing();
}

static void ports_inside_are_reached(void **state)
{
    (void)state;
    in_a_sandbox(dialling);
}

static void no_word(void)
{
    int fd;

    inside_end(&init);
    inside_start(&init, init_path, NULL);
    CHECK(connecting("93.184.215.14", 443, &fd) == ECONNREFUSED);
    CHECK(connecting("127.0.0.1", PORT_CONNECTIONS, &fd) == ECONNREFUSED);
    expect_nothing();
}

static void without_the_word_there_are_no_doors(void **state)
{
    (void)state;
    in_a_sandbox(no_word);
}

static void port_taken(void)
{
    struct frame f;

    inside_end(&init);
    bound(SOCK_DGRAM, "::1", PORT_LOOKUPS);
    int ends[2], status;
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        execl(init_path, "jerboa-init", "egress", NULL);
        _exit(9);
    }
    uint8_t bytes[1000];
    ssize_t n = read(ends[0], bytes, sizeof bytes);
    CHECK(n > 0 && frame_parse(bytes, (size_t)n, PEER_INIT, &f, NULL) == n);
    CHECK(f.type == FRAME_ERROR && f.channel == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 1);
    inside_start(&init, init_path, NULL); /* for the end */
}

static void init_does_not_start_without_its_doors(void **state)
{
    (void)state;
    in_a_sandbox(port_taken);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_arrive_with_their_destination),
        cmocka_unit_test(queries_are_answered_by_whom_was_asked),
        cmocka_unit_test(the_doors_are_inits_alone),
        cmocka_unit_test(a_crowd_is_bounded),
        cmocka_unit_test(ports_inside_are_reached),
        cmocka_unit_test(without_the_word_there_are_no_doors),
        cmocka_unit_test(init_does_not_start_without_its_doors),
    };

    if (argc != 2)
        return 2;
    init_path = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
