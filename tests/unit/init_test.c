/* jerboa-init's own code, with the ordinary compiler, around a world of the test's making: the
 * programs it starts are pipes and a child that waits to be killed; its files are real, in a
 * temporary directory; its doors are real too, on loopback, but no rule of a jail sends anybody
 * there. Only main.c and world.c are not here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/channel.h"
#include "init/dial.h"
#include "init/egress.h"
#include "init/inbox.h"
#include "init/outbox.h"
#include "init/reader.h"
#include "init/scan.h"
#include "init/world.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* ---- the world ---- */

static struct program {
    pid_t pid;
    int   in, out, err; /* its own ends */
} program;              /* the last one started */

static bool disk_is_full;

static int open_pipe(int ends[2], int size)
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    return fcntl(ends[0], F_SETPIPE_SZ, size);
}

int world_launch(const struct message_spawn *m, struct launched *ret, struct err *e)
{
    int in[2], out[2], err[2];

    if (strcmp(m->argv[0], "/missing") == 0) {
        errno = ENOENT;
        return err_sys(e, "start %s", m->argv[0]);
    }
    pid_t pid = fork(); /* before there are pipes: they are the parent's alone to end */
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_range(0, ~0U, 0);
        for (;;)
            pause();
    }
    if (open_pipe(in, 4096) < 0 || open_pipe(out, 1 << 16) < 0 || open_pipe(err, 1 << 16) < 0)
        return err_sys(e, "pipe");
    program = (struct program){pid, in[0], out[1], err[1]};
    if (!m->has_stdin)
        fd_close(&in[1]);
    *ret = (struct launched){program.pid, program.pid, in[1], out[0], err[0]};
    return 0;
}

bool world_read_exit(int exit_fd, int *status, struct rusage *usage)
{
    (void)exit_fd, (void)status, (void)usage;
    return true;
}

void world_end(pid_t leader, int exit_fd)
{
    (void)leader, (void)exit_fd;
}

struct message_group_ended world_counters(void)
{
    return (struct message_group_ended){0};
}

int world_create_file(const char *temp_path, mode_t mode, struct err *e)
{
    int fd = open(temp_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0777);

    return fd < 0 ? err_sys(e, "create %s", temp_path) : fd;
}

int world_publish(const char *temp_path, const char *path, struct err *e)
{
    return rename(temp_path, path) < 0 ? err_sys(e, "write %s", path) : 0;
}

void world_discard(const char *temp_path)
{
    unlink(temp_path);
}

static char dir[] = "/tmp/init_test.XXXXXX"; /* also the workspace */

int world_open_workspace(struct err *e)
{
    int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 ? err_sys(e, "open %s", dir) : fd;
}

bool world_disk_is_full(void)
{
    return disk_is_full;
}

enum { DOOR_CONNECTIONS, DOOR_LOOKUPS };

static struct sockaddr_in door_addresses[2];
static bool               goes_to_the_door;

static int open_door(int which)
{
    struct sockaddr_in *a = &door_addresses[which];
    socklen_t           size = sizeof *a;
    int                 type = which == DOOR_LOOKUPS ? SOCK_DGRAM : SOCK_STREAM, small = 4096;
    int                 fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    *a = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (fd < 0 || bind(fd, (struct sockaddr *)a, sizeof *a) < 0 ||
        getsockname(fd, (struct sockaddr *)a, &size) < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small); /* so that init has to keep some */
    return type == SOCK_STREAM && listen(fd, 200) < 0 ? -1 : fd;
}

int world_open_doors(struct doors *ret, struct err *e)
{
    *ret = (struct doors){{open_door(DOOR_CONNECTIONS), -1}, {open_door(DOOR_LOOKUPS), -1}};
    return ret->connections[0] < 0 || ret->lookups[0] < 0 ? err_sys(e, "doors") : 0;
}

int world_find_destination(int fd, struct message_connect *ret)
{
    (void)fd;
    *ret = (struct message_connect){{0x20, 1, [15] = 7}, 443};
    return goes_to_the_door ? -1 : 0;
}

static bool ipv6_only; /* the servers inside */

int world_dial(uint16_t port, bool is_ipv6, struct err *e)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), small = 4096;

    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    if (is_ipv6 != ipv6_only)
        errno = ECONNREFUSED;
    else if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0 || errno == EINPROGRESS)
        return fd;
    err_sys(e, "connect to port %u inside", port);
    close(fd);
    return -1;
}

/* ---- the server's side ---- */

static struct inbox inbox;
static int          to_init, init_in, from_init, saved_stdout;
static struct buf   received;

static int set_up(void **state)
{
    int ends[2];

    (void)state;
    signal(SIGPIPE, SIG_IGN);
    disk_is_full = false;
    program = (struct program){0, -1, -1, -1};
    buf_init(&received, 4 << 20);
    inbox_init(&inbox);
    if (open_pipe(ends, 1 << 20) < 0)
        return -1;
    init_in = ends[0], to_init = ends[1];
    if (open_pipe(ends, 1 << 20) < 0)
        return -1;
    fflush(stdout);
    saved_stdout = fcntl(1, F_DUPFD_CLOEXEC, 3);
    dup2(ends[1], 1);
    close(ends[1]);
    from_init = ends[0];
    return 0;
}

static int raw(const void *bytes, size_t size)
{
    struct err e = {0};
    int        r;

    assert_int_equal(fd_write_all(to_init, bytes, size), 0);
    do
        r = inbox_read(&inbox, init_in, &e);
    while (r == 1 && poll(&(struct pollfd){init_in, POLLIN, 0}, 1, 0) > 0);
    assert_int_equal(r < 0, e.kind != ERR_NONE);
    return r;
}

static int send_frame(enum frame_type type, uint32_t channel, uint8_t stream, const void *payload,
                      size_t size)
{
    autobuf struct buf b;

    buf_init(&b, FRAME_HEADER + FRAME_MAX);
    frame_add(&b, &(struct frame){type, stream, channel, payload, size});
    return raw(b.data, b.size);
}

static int send_u32(enum frame_type type, uint32_t channel, uint8_t stream, uint32_t v)
{
    autobuf struct buf b;

    buf_init(&b, 4);
    message_pack_u32(&b, v);
    return send_frame(type, channel, stream, b.data, b.size);
}

/* As many frames as it takes; the last one's result. */
static int send_data(uint32_t channel, const char *bytes, size_t size)
{
    int r = 1;

    for (size_t n; size > 0 && r == 1; bytes += n, size -= n) {
        n = size < FRAME_DATA_MAX ? size : FRAME_DATA_MAX;
        r = send_frame(FRAME_DATA, channel, STREAM_IN, bytes, n);
    }
    return r;
}

static int hello(void)
{
    return send_frame(FRAME_HELLO, 0, 0, "jrbo\1\0\0\0", 8);
}

static int spawn(uint32_t channel, const char *path, bool has_stdin)
{
    const char          *argv[] = {path, NULL}, *env[] = {NULL};
    struct message_spawn m = {channel, has_stdin, "/", argv, env};
    autobuf struct buf   b;

    buf_init(&b, 1000);
    message_pack_spawn(&b, &m);
    return send_frame(FRAME_SPAWN, channel, 0, b.data, b.size);
}

static int write_file(uint32_t channel, const char *path)
{
    autobuf struct buf b;

    buf_init(&b, 1000);
    message_pack_write_file(&b, &(struct message_write_file){0640, path});
    return send_frame(FRAME_WRITE_FILE, channel, 0, b.data, b.size);
}

/* One round of init's loop, and what it sent taken off its stdout. */
static void turn_within(int ms)
{
    struct pollfd polls[CHANNEL_POLLS_MAX + EGRESS_POLLS_MAX + DIALS_MAX];
    size_t        first = channel_fill_polls(polls);
    size_t        second = first + egress_fill_polls(polls + first);
    ssize_t       n;

    poll(polls, second + dial_fill_polls(polls + second), ms);
    channel_ready(polls);
    egress_ready(polls + first);
    dial_ready(polls + second);
    reader_step();
    scan_step();
    outbox_flush();
    while ((n = read(from_init, buf_reserve(&received, 1 << 16), 1 << 16)) > 0)
        received.size += (size_t)n;
}

static void turn(void)
{
    turn_within(0);
}

/* The next frame of init, without its payload; type 0 when there is none. */
static struct frame next(char text[100])
{
    struct frame f = {0};
    struct err   e = {0};
    long         n;

    turn();
    n = frame_parse(received.data, received.size, PEER_INIT, &f, &e);
    assert_true(n >= 0);
    if (text && n > 0)
        snprintf(text, 100, "%.*s", (int)f.size, (const char *)f.payload);
    buf_drop(&received, (size_t)n);
    return n > 0 ? f : (struct frame){0};
}

static void expect(enum frame_type type, uint32_t channel, uint8_t stream)
{
    struct frame f = next(NULL);

    if (f.type != type || f.channel != channel || f.stream != stream)
        fail_msg("%s %u %u, expected %s %u %u", f.type ? frame_type_name(f.type) : "nothing",
                 f.channel, f.stream, frame_type_name(type), channel, stream);
}

static void expect_nothing(void)
{
    struct frame f = next(NULL);

    if (f.type)
        fail_msg("%s on %u", frame_type_name(f.type), f.channel);
}

static void expect_credit(uint32_t channel, uint32_t bytes)
{
    struct frame f;
    uint32_t     v;

    turn();
    assert_true(frame_parse(received.data, received.size, PEER_INIT, &f, NULL) > 0);
    assert_int_equal(f.type, FRAME_CREDIT);
    assert_int_equal(message_unpack_u32(&f, &v, NULL), 0);
    assert_int_equal(v, bytes);
    expect(FRAME_CREDIT, channel, STREAM_IN);
}

/* Ends the program that was started last, and its channel with it. */
static void end_program(void)
{
    fd_close(&program.in);
    fd_close(&program.out);
    fd_close(&program.err);
    if (program.pid > 0) {
        kill(program.pid, SIGKILL);
        waitid(P_PID, (id_t)program.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
        channel_reap();
    }
    program.pid = 0;
    for (int i = 0; i < 32; i++) /* what its pipes still hold, then their ends */
        turn();
}

static int tear_down(void **state)
{
    struct pollfd polls[CHANNEL_POLLS_MAX + EGRESS_POLLS_MAX];
    size_t        n_doors = 4;

    (void)state;
    end_program();
    dup2(saved_stdout, 1);
    close(saved_stdout);
    close(to_init);
    close(init_in);
    close(from_init);
    inbox_done(&inbox);
    buf_done(&received);
    if (egress_fill_polls(polls) > n_doors) /* every test leaves the tables empty */
        return -1;
    if (dial_fill_polls(polls) > 0 || reader_is_busy() || scan_is_busy())
        return -1;
    return channel_fill_polls(polls) == 0 ? 0 : -1;
}

/* ---- greeting ---- */

static void init_says_hello(void **state)
{
    struct frame f;

    (void)state;
    inbox_send_hello();
    turn();
    assert_true(frame_parse(received.data, received.size, PEER_INIT, &f, NULL) > 0);
    assert_int_equal(message_check_hello(&f, NULL), 0);
}

static void hello_comes_first_and_once(void **state)
{
    (void)state;
    assert_int_equal(hello(), 1);
    assert_int_equal(hello(), -1);
}

static void nothing_comes_before_hello(void **state)
{
    (void)state;
    assert_int_equal(send_frame(FRAME_END, 1, 0, NULL, 0), -1);
}

static void another_version_is_refused(void **state)
{
    (void)state;
    assert_int_equal(send_frame(FRAME_HELLO, 0, 0, "jrbo\2\0\0\0", 8), -1);
}

static void frames_come_in_pieces(void **state)
{
    autobuf struct buf b;

    (void)state;
    buf_init(&b, 1000);
    frame_add(&b, &(struct frame){FRAME_HELLO, 0, 0, (const uint8_t *)"jrbo\1\0\0\0", 8});
    for (size_t i = 0; i < b.size; i++)
        assert_int_equal(raw(b.data + i, 1), 1);
    assert_int_equal(hello(), -1); /* it was understood */
}

static void the_end_of_input_is_no_error(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(inbox_read(&inbox, init_in, &e), 1); /* nothing yet */
    assert_int_equal(raw("\x08\0\0", 3), 1);              /* half a frame: the server died */
    fd_close(&to_init);
    assert_int_equal(inbox_read(&inbox, init_in, &e), 0);
    assert_int_equal(e.kind, ERR_NONE);
}

/* ---- processes ---- */

static void stdin_flows_and_gives_credit_back(void **state)
{
    char bytes[10];

    (void)state;
    hello();
    assert_int_equal(spawn(1, "/p", true), 1);
    expect(FRAME_STARTED, 1, 0);
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, "abc", 3), 1);
    expect_credit(1, 3);
    assert_int_equal(read(program.in, bytes, sizeof bytes), 3);
    assert_memory_equal(bytes, "abc", 3);
    assert_int_equal(send_frame(FRAME_END, 1, STREAM_IN, NULL, 0), 1);
    assert_int_equal(read(program.in, bytes, sizeof bytes), 0);
    expect_nothing(); /* who ended it knows */
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, "late", 4), 1);
    expect_nothing();
}

static void stdin_has_a_window(void **state)
{
    static const char bytes[FRAME_DATA_MAX];

    (void)state;
    hello();
    spawn(1, "/p", true);
    expect(FRAME_STARTED, 1, 0);
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, bytes, sizeof bytes), 1);
    expect_credit(1, 4096); /* what the program's pipe took */
    expect_nothing();
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, bytes, 4096), 1);
    expect_nothing();
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, bytes, 1), -1);
}

static void what_waits_goes_out_before_the_end(void **state)
{
    static char bytes[FRAME_DATA_MAX];
    size_t      sum = 0;
    ssize_t     n;

    (void)state;
    hello();
    spawn(1, "/p", true);
    send_frame(FRAME_DATA, 1, STREAM_IN, bytes, 10000);
    assert_int_equal(send_frame(FRAME_END, 1, STREAM_IN, NULL, 0), 1);
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, "x", 1), -1); /* past the end */
    while ((n = read(program.in, bytes, sizeof bytes)) > 0) {
        sum += (size_t)n;
        turn();
    }
    assert_int_equal(n, 0);
    assert_int_equal(sum, 10000);
}

/* Each write wakes the server. */
static void an_end_leaves_in_one_write(void **state)
{
    struct pollfd polls[CHANNEL_POLLS_MAX];
    char          bytes[1000];

    (void)state;
    hello();
    spawn(1, "/p", false);
    expect(FRAME_STARTED, 1, 0);
    fd_close(&program.out);
    fd_close(&program.err);
    kill(program.pid, SIGKILL);
    waitid(P_PID, (id_t)program.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
    poll(polls, channel_fill_polls(polls), 0);
    channel_ready(polls);
    channel_reap();
    assert_int_equal(read(from_init, bytes, sizeof bytes), -1);
    assert_int_equal(errno, EAGAIN);
    expect(FRAME_END, 1, STREAM_OUT);
    expect(FRAME_END, 1, STREAM_ERR);
    expect(FRAME_EXITED, 1, 0);
    program.pid = 0;
}

static void a_program_may_close_its_stdin(void **state)
{
    (void)state;
    hello();
    spawn(1, "/p", true);
    expect(FRAME_STARTED, 1, 0);
    fd_close(&program.in);
    expect(FRAME_END, 1, STREAM_IN);
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, "x", 1), 1); /* crossed it */
    assert_int_equal(send_frame(FRAME_END, 1, STREAM_IN, NULL, 0), 1);
    expect_nothing();
}

static void without_stdin_data_is_dropped(void **state)
{
    (void)state;
    hello();
    spawn(1, "/p", false);
    expect(FRAME_STARTED, 1, 0);
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, "x", 1), 1);
    expect_nothing();
}

static void output_is_relayed_to_its_end(void **state)
{
    char text[100];

    (void)state;
    hello();
    spawn(1, "/p", false);
    expect(FRAME_STARTED, 1, 0);
    fd_write_all(program.out, "out", 3);
    struct frame f = next(text);
    assert_int_equal(f.type, FRAME_DATA);
    assert_int_equal(f.stream, STREAM_OUT);
    assert_string_equal(text, "out");
    fd_write_all(program.err, "err", 3);
    f = next(text);
    assert_int_equal(f.stream, STREAM_ERR);
    assert_string_equal(text, "err");
    fd_close(&program.out);
    expect(FRAME_END, 1, STREAM_OUT);
    expect_nothing();
    fd_close(&program.err);
    expect(FRAME_END, 1, STREAM_ERR);
}

/* Bytes of DATA that init relays while the program writes as much as it can. */
static size_t relayed(void)
{
    static const char bytes[1 << 16];
    size_t            sum = 0, before = SIZE_MAX;

    while (sum != before) {
        struct frame f;

        before = sum;
        if (write(program.out, bytes, sizeof bytes) < 0)
            assert_int_equal(errno, EAGAIN);
        while ((f = next(NULL)).type) {
            assert_int_equal(f.type, FRAME_DATA);
            sum += f.size;
        }
    }
    return sum;
}

static void output_needs_credit(void **state)
{
    struct pollfd polls[CHANNEL_POLLS_MAX];

    (void)state;
    hello();
    spawn(1, "/p", false);
    expect(FRAME_STARTED, 1, 0);
    assert_int_equal(relayed(), WINDOW_FROM_INIT);
    assert_int_equal(channel_fill_polls(polls), 3);
    assert_int_equal(polls[1].fd, -1); /* not looked at, so that poll sleeps */
    assert_int_equal(send_u32(FRAME_CREDIT, 1, STREAM_OUT, 1000), 1);
    assert_int_equal(relayed(), 1000);
    assert_int_equal(send_u32(FRAME_CREDIT, 1, STREAM_OUT, WINDOW_FROM_INIT), 1);
    assert_int_equal(send_u32(FRAME_CREDIT, 1, STREAM_OUT, 1), -1); /* past the window */
}

static void an_exit_is_told_with_its_usage(void **state)
{
    struct message_exited m;
    struct frame          f;

    (void)state;
    hello();
    disk_is_full = true;
    spawn(1, "/p", true);
    expect(FRAME_STARTED, 1, 0);
    assert_int_equal(send_frame(FRAME_DATA, 1, STREAM_IN, "abc", 3), 1);
    expect_credit(1, 3);
    assert_int_equal(read(program.in, &(char){0}, 1), 1);
    assert_int_equal(send_u32(FRAME_SIGNAL, 1, 0, SIGTERM), 1);
    waitid(P_PID, (id_t)program.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
    channel_reap();
    turn();
    assert_true(frame_parse(received.data, received.size, PEER_INIT, &f, NULL) > 0);
    assert_int_equal(f.type, FRAME_EXITED);
    assert_int_equal(message_unpack_exited(&f, &m, NULL), 0);
    assert_int_equal(m.code, -1);
    assert_int_equal(m.signal, SIGTERM);
    assert_true(m.disk_full);
    assert_true(m.max_rss_bytes > 0);
    assert_int_equal(m.stdin_bytes, 1);
    expect(FRAME_EXITED, 1, 0);
    expect_nothing();                                           /* no END for its stdin */
    assert_int_equal(send_u32(FRAME_SIGNAL, 1, 0, SIGKILL), 1); /* nobody is hit */
    fd_write_all(program.out, "last words", 10);                /* of a grandchild */
    expect(FRAME_DATA, 1, STREAM_OUT);
    program.pid = 0;
    end_program();
    expect(FRAME_END, 1, STREAM_OUT);
    expect(FRAME_END, 1, STREAM_ERR);
    assert_int_equal(spawn(1, "/p", false), 1); /* its number is free again */
    expect(FRAME_STARTED, 1, 0);
}

static void a_program_that_cannot_start_is_an_error(void **state)
{
    struct message_error m;
    struct frame         f;

    (void)state;
    hello();
    assert_int_equal(spawn(4, "/missing", true), 1);
    turn();
    assert_true(frame_parse(received.data, received.size, PEER_INIT, &f, NULL) > 0);
    assert_int_equal(message_unpack_error(&f, &m, NULL), 0);
    assert_int_equal(m.sys, ENOENT);
    assert_string_equal(m.text, "start /missing: No such file or directory");
    expect(FRAME_ERROR, 4, 0);
    assert_int_equal(spawn(4, "/p", true), 1);
    expect(FRAME_STARTED, 4, 0);
}

/* ---- frames that fit nothing ---- */

static void unknown_channels_are_dropped(void **state)
{
    (void)state;
    hello();
    assert_int_equal(send_frame(FRAME_DATA, 9, STREAM_IN, "x", 1), 1);
    assert_int_equal(send_frame(FRAME_END, 9, STREAM_IN, NULL, 0), 1);
    assert_int_equal(send_u32(FRAME_CREDIT, 9, STREAM_OUT, 1), 1);
    assert_int_equal(send_u32(FRAME_SIGNAL, 9, 0, 9), 1);
    expect_nothing();
}

static void violations_end_init(void **state)
{
    static const struct {
        enum frame_type type;
        uint32_t        channel;
        uint8_t         stream;
        const char     *payload;
        size_t          size;
    } cases[] = {
        {FRAME_DATA, 1, STREAM_OUT, "x", 1},
        {FRAME_END, 1, STREAM_ERR, "", 0},
        {FRAME_CREDIT, 1, STREAM_IN, "\1\0\0\0", 4},
        {FRAME_CREDIT, 1, STREAM_OUT, "\1\0\0\0", 4}, /* the window is full already */
        {FRAME_CREDIT, 1, STREAM_ERR, "\xff\xff\xff\xff", 4},
        {FRAME_SIGNAL, 1, 0, "\0\0\0\0", 4},
        {FRAME_SIGNAL, 1, 0, "\x41\0\0\0", 4},
        {FRAME_SIGNAL, 1, 0, "\xff\xff\xff\xff", 4},
        {FRAME_GROUP_MAKE, 1, 0, "", 0},
        {FRAME_PLAN, 1, 0, "{}", 2},
        {FRAME_SPAWN, 2, 0, "x", 1},
        {FRAME_SPAWN, 1, 0, "\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0p\0\0\0\0\0", 24}, /* taken */
        {FRAME_SPAWN, 0, 0, "\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0p\0\0\0\0\0", 24},
        {FRAME_WRITE_FILE, 1, 0, "\0\0\0\0\1\0\0\0f\0", 10}, /* taken */
        {FRAME_WRITE_FILE, 0, 0, "\0\0\0\0\1\0\0\0f\0", 10},
        {FRAME_WRITE_FILE, 2, 0, "\0\0\0\0\1\0\0\0f", 9},
        {FRAME_STARTED, 1, 0, "", 0}, /* only init sends it */
        {FRAME_EXITED, 1, 0, "x", 1},
    };

    for (size_t i = 0; i < N(cases); i++) {
        assert_int_equal(hello(), 1);
        assert_int_equal(spawn(1, "/p", true), 1);
        if (send_frame(cases[i].type, cases[i].channel, cases[i].stream, cases[i].payload,
                       cases[i].size) != -1)
            fail_msg("case %zu, %s, was taken", i, frame_type_name(cases[i].type));
        assert_int_equal(tear_down(state), 0);
        assert_int_equal(set_up(state), 0);
    }
}

/* ---- files ---- */

static const char *in_dir(const char *name)
{
    static char path[200];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int make_dir(void **state)
{
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    return mkdtemp(dir) ? set_up(state) : -1;
}

static int remove_dir(void **state)
{
    unlink(in_dir("x"));
    return tear_down(state) + rmdir(dir); /* fails when something else was left behind */
}

static void a_file_appears_whole(void **state)
{
    autofree char *text = NULL;
    struct stat    s;

    (void)state;
    hello();
    umask(022);
    assert_int_equal(symlink("/dev/null", in_dir("x")), 0); /* it is replaced, not followed */
    assert_int_equal(write_file(5, in_dir("x")), 1);
    assert_int_equal(send_frame(FRAME_DATA, 5, STREAM_IN, "hello ", 6), 1);
    expect_credit(5, 6);
    assert_int_equal(send_frame(FRAME_DATA, 5, STREAM_IN, "world", 5), 1);
    expect_credit(5, 5);
    assert_int_equal(lstat(in_dir("x"), &s), 0);
    assert_true(S_ISLNK(s.st_mode)); /* not yet */
    assert_int_equal(send_frame(FRAME_END, 5, STREAM_IN, NULL, 0), 1);
    expect(FRAME_DONE, 5, 0);
    assert_int_equal(file_read_text(AT_FDCWD, in_dir("x"), 100, &text, NULL), 0);
    assert_string_equal(text, "hello world");
    assert_int_equal(lstat(in_dir("x"), &s), 0);
    assert_int_equal(s.st_mode, S_IFREG | 0640);
    assert_int_equal(write_file(5, in_dir("x")), 1); /* its number is free again; empty this time */
    assert_int_equal(send_frame(FRAME_END, 5, STREAM_IN, NULL, 0), 1);
    expect(FRAME_DONE, 5, 0);
    assert_int_equal(lstat(in_dir("x"), &s), 0);
    assert_int_equal(s.st_size, 0);
}

static void a_file_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    hello();
    assert_int_equal(write_file(5, in_dir("no/x")), 1);
    expect(FRAME_ERROR, 5, 0);
    assert_int_equal(send_frame(FRAME_DATA, 5, STREAM_IN, "x", 1), 1); /* crossed it */
    assert_int_equal(send_frame(FRAME_END, 5, STREAM_IN, NULL, 0), 1);
    expect_nothing();
}

static void a_file_that_gets_no_name_leaves_nothing(void **state)
{
    (void)state;
    hello();
    assert_int_equal(mkdir(in_dir("d"), 0755), 0);
    assert_int_equal(write_file(5, in_dir("d")), 1);
    assert_int_equal(send_frame(FRAME_END, 5, STREAM_IN, NULL, 0), 1);
    expect(FRAME_ERROR, 5, 0);
    assert_int_equal(rmdir(in_dir("d")), 0);
}

static void channels_are_counted(void **state)
{
    char name[20];

    (void)state;
    hello();
    for (uint32_t i = 1; i <= CHANNELS_MAX; i++) {
        snprintf(name, sizeof name, "%u", i);
        assert_int_equal(write_file(i, in_dir(name)), 1);
    }
    expect_nothing();
    assert_int_equal(write_file(CHANNELS_MAX + 1, in_dir("x")), 1);
    expect(FRAME_ERROR, CHANNELS_MAX + 1, 0);
    for (uint32_t i = 1; i <= CHANNELS_MAX; i++) {
        assert_int_equal(send_frame(FRAME_END, i, STREAM_IN, NULL, 0), 1);
        expect(FRAME_DONE, i, 0);
        snprintf(name, sizeof name, "%u", i);
        assert_int_equal(unlink(in_dir(name)), 0);
    }
}

/* ---- egress ---- */

enum { FEW = 64 }; /* connections, because few descriptors were there when the doors were opened */

static int open_doors_once(void **state)
{
    static bool   done;
    struct rlimit before, few;
    struct err    e = {0};

    goes_to_the_door = false;
    if (set_up(state) < 0)
        return -1;
    hello();
    if (done)
        return 0;
    done = true;
    if (getrlimit(RLIMIT_NOFILE, &before) < 0)
        return -1;
    few = (struct rlimit){2 * FEW, before.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &few) < 0 || egress_open(&e) < 0)
        return -1;
    return setrlimit(RLIMIT_NOFILE, &before);
}

enum { PATIENCE = 200, PATIENCE_MS = 5 }; /* TCP may take its time, on a busy machine */

/* The next frame of init, which must come. */
static struct frame await(char text[100])
{
    struct frame f = next(text);

    for (int i = 0; i < PATIENCE && !f.type; i++) {
        turn_within(PATIENCE_MS);
        f = next(text);
    }
    return f;
}

static void await_frame(enum frame_type type, uint32_t channel, uint8_t stream)
{
    struct frame f = await(NULL);

    assert_int_equal(f.type, type);
    assert_int_equal(f.channel, channel);
    assert_int_equal(f.stream, stream);
}

/* Code connects; its own end. */
static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;

    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(
        connect(fd, (struct sockaddr *)&door_addresses[DOOR_CONNECTIONS], sizeof door_addresses[0]),
        0);
    fd_set_nonblock(fd, true);
    return fd;
}

static uint32_t expect_connect(void)
{
    struct frame f = await(NULL);

    assert_int_equal(f.type, FRAME_CONNECT);
    assert_true(f.channel & CHANNEL_OF_INIT);
    return f.channel;
}

/* After a violation init would end; here the inbox is emptied and the connection taken away. */
static void start_over(uint32_t id)
{
    inbox_done(&inbox);
    inbox_init(&inbox);
    hello();
    assert_int_equal(send_frame(FRAME_RESET, id, 0, NULL, 0), 1);
}

/* What code reads while init turns: a count, 0 at the end, or -errno. */
static long reads(int fd, void *bytes, size_t size)
{
    ssize_t n = read(fd, bytes, size);

    for (int i = 0; i < PATIENCE && n < 0 && errno == EAGAIN; i++) {
        turn_within(PATIENCE_MS);
        n = read(fd, bytes, size);
    }
    return n < 0 ? -errno : n;
}

static void reads_nothing(int fd)
{
    char byte;

    assert_true(read(fd, &byte, 1) < 0 && errno == EAGAIN);
}

static void a_connection_is_told_with_its_destination(void **state)
{
    struct message_connect m;
    struct frame           f;
    autofd int             a = dial(), b = -1;

    (void)state;
    turn_within(PATIENCE * PATIENCE_MS);
    assert_true(frame_parse(received.data, received.size, PEER_INIT, &f, NULL) > 0);
    assert_int_equal(message_unpack_connect(&f, &m, NULL), 0);
    assert_int_equal(m.port, 443);
    assert_int_equal(m.address[0], 0x20);
    assert_int_equal(m.address[15], 7);
    uint32_t first = expect_connect();
    b = dial();
    assert_int_equal(expect_connect(), first + 1);
    send_frame(FRAME_RESET, first, 0, NULL, 0);
    send_frame(FRAME_RESET, first + 1, 0, NULL, 0);
    expect_nothing(); /* who reset it knows */
    assert_int_equal(reads(a, &m, 1), -ECONNRESET);
    assert_int_equal(reads(b, &m, 1), -ECONNRESET);
    fd_close(&a);
    a = dial();
    assert_int_equal(expect_connect(), first + 2); /* never twice */
    send_frame(FRAME_RESET, first + 2, 0, NULL, 0);
}

static void bytes_go_both_ways(void **state)
{
    autofd int code = dial();
    char       text[100] = "";
    uint32_t   id = expect_connect();

    (void)state;
    fd_write_all(code, "ping", 4);
    struct frame f = await(text);
    assert_int_equal(f.type, FRAME_DATA);
    assert_int_equal(f.channel, id);
    assert_int_equal(f.stream, STREAM_OUT);
    assert_string_equal(text, "ping");
    assert_int_equal(send_frame(FRAME_DATA, id, STREAM_IN, "pong", 4), 1);
    assert_int_equal(reads(code, text, 4), 4);
    assert_memory_equal(text, "pong", 4);
    expect_nothing(); /* four bytes are not worth a credit frame */
    send_frame(FRAME_RESET, id, 0, NULL, 0);
}

static void what_code_sends_needs_credit(void **state)
{
    static const char bytes[WINDOW_CONNECTION];
    autofd int        code = dial();
    uint32_t          id = expect_connect();
    struct frame      f;
    size_t            sum = 0;

    (void)state;
    for (int i = 0; i < 50; i++) {
        (void)!write(code, bytes, sizeof bytes);
        while ((f = next(NULL)).type) {
            assert_int_equal(f.type, FRAME_DATA);
            sum += f.size;
        }
    }
    assert_int_equal(sum, WINDOW_CONNECTION);
    assert_int_equal(send_u32(FRAME_CREDIT, id, STREAM_OUT, 1000), 1);
    f = await(NULL);
    assert_int_equal(f.type, FRAME_DATA);
    assert_int_equal(f.size, 1000);
    expect_nothing();
    assert_int_equal(send_u32(FRAME_CREDIT, id, STREAM_OUT, WINDOW_CONNECTION + 1), -1);
    start_over(id);
}

/* Credit that init gave for a connection's input since the last time. */
static uint32_t credit_given(uint32_t id)
{
    uint32_t sum = 0, v;

    turn_within(10 * PATIENCE_MS);
    for (;;) {
        struct frame f;
        long         n = frame_parse(received.data, received.size, PEER_INIT, &f, NULL);

        if (n <= 0)
            return sum;
        assert_int_equal(f.type, FRAME_CREDIT);
        assert_int_equal(f.channel, id);
        assert_int_equal(f.stream, STREAM_IN);
        assert_int_equal(message_unpack_u32(&f, &v, NULL), 0);
        sum += v;
        buf_drop(&received, (size_t)n);
    }
}

static void slow_code_fills_a_window_and_no_more(void **state)
{
    static char bytes[WINDOW_CONNECTION];
    autofd int  code = dial();
    uint32_t    id = expect_connect(), credit = WINDOW_CONNECTION;
    size_t      sent = 0, taken = 0;
    long        n;

    (void)state;
    while (credit > 0) { /* until neither the kernel nor init take any more */
        memset(bytes, (int)(sent >> 16), credit);
        assert_int_equal(send_data(id, bytes, credit), 1);
        sent += credit;
        credit = credit_given(id);
        assert_true(sent < 8 << 20);
    }
    assert_int_equal(send_frame(FRAME_END, id, STREAM_IN, NULL, 0), 1);
    while ((n = reads(code, bytes, sizeof bytes)) > 0)
        taken += (size_t)n;
    assert_int_equal(n, 0); /* all of it came, and then the end */
    credit = credit_given(id);
    assert_int_equal(taken, sent);
    assert_true(credit > WINDOW_CONNECTION / 2);
    fd_close(&code);
    await_frame(FRAME_END, id, STREAM_OUT);
    assert_int_equal(send_frame(FRAME_DATA, id, STREAM_IN, "x", 1), 1); /* it is no more */
}

static void the_window_of_slow_code_holds(void **state)
{
    static char bytes[WINDOW_CONNECTION];
    autofd int  code = dial();
    uint32_t    id = expect_connect(), credit = WINDOW_CONNECTION;

    (void)state;
    while (credit > 0) {
        assert_int_equal(send_data(id, bytes, credit), 1);
        credit = credit_given(id);
    }
    assert_int_equal(send_frame(FRAME_DATA, id, STREAM_IN, "x", 1), -1);
    start_over(id);
}

static void code_may_half_close(void **state)
{
    autofd int code = dial();
    uint32_t   id = expect_connect();
    char       bytes[10];

    (void)state;
    fd_write_all(code, "request", 7);
    shutdown(code, SHUT_WR);
    await_frame(FRAME_DATA, id, STREAM_OUT);
    await_frame(FRAME_END, id, STREAM_OUT);
    expect_nothing();
    assert_int_equal(send_frame(FRAME_DATA, id, STREAM_IN, "answer", 6), 1);
    assert_int_equal(reads(code, bytes, sizeof bytes), 6);
    reads_nothing(code);
    assert_int_equal(send_frame(FRAME_END, id, STREAM_IN, NULL, 0), 1);
    assert_int_equal(reads(code, bytes, sizeof bytes), 0);
    expect_nothing(); /* both know */
}

static void the_server_may_half_close(void **state)
{
    autofd int code = dial();
    uint32_t   id = expect_connect();
    char       bytes[10];

    (void)state;
    assert_int_equal(send_frame(FRAME_END, id, STREAM_IN, NULL, 0), 1);
    assert_int_equal(reads(code, bytes, sizeof bytes), 0);
    fd_write_all(code, "late", 4);
    await_frame(FRAME_DATA, id, STREAM_OUT);
    expect_nothing();
    fd_close(&code);
    await_frame(FRAME_END, id, STREAM_OUT);
    expect_nothing();
}

static void poll_sleeps_when_both_are_shut_and_credit_is_missing(void **state)
{
    static const char bytes[WINDOW_CONNECTION];
    struct pollfd     polls[EGRESS_POLLS_MAX];
    autofd int        code = dial();
    uint32_t          id = expect_connect();

    (void)state;
    fd_set_nonblock(code, false);
    for (size_t sum = 0; sum < WINDOW_CONNECTION; sum += await(NULL).size)
        fd_write_all(code, bytes, 4096); /* some more than the window */
    fd_close(&code);
    assert_int_equal(send_frame(FRAME_END, id, STREAM_IN, NULL, 0), 1);
    assert_int_equal(poll(polls, egress_fill_polls(polls), 0), 0);
    while (await(NULL).type != FRAME_END)
        assert_int_equal(send_u32(FRAME_CREDIT, id, STREAM_OUT, 1024), 1);
}

static void the_server_resets_at_once(void **state)
{
    static char bytes[WINDOW_CONNECTION];
    autofd int  code = dial();
    uint32_t    id = expect_connect(), credit = WINDOW_CONNECTION;
    long        n;

    (void)state;
    while (credit > 0) { /* some waits in init */
        assert_int_equal(send_data(id, bytes, credit), 1);
        credit = credit_given(id);
    }
    assert_int_equal(send_frame(FRAME_RESET, id, 0, NULL, 0), 1);
    while ((n = reads(code, bytes, sizeof bytes)) > 0)
        ;
    assert_int_equal(n, -ECONNRESET);
    expect_nothing();
    assert_int_equal(send_frame(FRAME_RESET, id, 0, NULL, 0), 1); /* crossed it */
}

static void a_reset_of_code_is_told(void **state)
{
    static char bytes[WINDOW_CONNECTION];
    int         code = dial();
    uint32_t    id = expect_connect(), credit = WINDOW_CONNECTION;

    (void)state;
    fd_reset(&code);
    await_frame(FRAME_RESET, id, 0);
    assert_int_equal(send_frame(FRAME_DATA, id, STREAM_IN, "x", 1), 1); /* crossed it */
    assert_int_equal(send_frame(FRAME_END, id, STREAM_IN, NULL, 0), 1);
    expect_nothing();

    code = dial(); /* while some waits for it */
    id = expect_connect();
    while (credit > 0) {
        assert_int_equal(send_data(id, bytes, credit), 1);
        credit = credit_given(id);
    }
    fd_reset(&code);
    await_frame(FRAME_RESET, id, 0);

    code = dial(); /* when it had half closed before */
    id = expect_connect();
    shutdown(code, SHUT_WR);
    await_frame(FRAME_END, id, STREAM_OUT);
    fd_reset(&code);
    await_frame(FRAME_RESET, id, 0);
    expect_nothing();
}

static void who_knocks_at_the_door_itself_is_reset(void **state)
{
    autofd int code = -1;
    char       byte;

    (void)state;
    goes_to_the_door = true;
    code = dial();
    assert_int_equal(reads(code, &byte, 1), -ECONNRESET);
    expect_nothing();
}

static void connections_are_counted(void **state)
{
    int      codes[FEW + 1];
    uint32_t first = 0;
    char     byte;

    (void)state;
    for (int i = 0; i < FEW; i++) {
        codes[i] = dial();
        uint32_t id = expect_connect();
        first = i == 0 ? id : first;
    }
    codes[FEW] = dial();
    assert_int_equal(reads(codes[FEW], &byte, 1), -ECONNRESET);
    expect_nothing();
    fd_reset(&codes[7]);
    await_frame(FRAME_RESET, first + 7, 0);
    codes[7] = dial(); /* its place is free again */
    assert_int_equal(expect_connect(), first + FEW);
    for (int i = 0; i <= FEW; i++)
        fd_close(&codes[i]);
    for (uint32_t i = 0; i <= FEW; i++)
        assert_int_equal(send_frame(FRAME_RESET, first + i, 0, NULL, 0), 1);
}

static void without_descriptors_code_is_reset(void **state)
{
    struct rlimit before, none;
    autofd int    code = dial(), lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);
    char          byte;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){(rlim_t)lowest, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(reads(code, &byte, 1), -ECONNRESET);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    expect_nothing();
    fd_close(&code);
    code = dial();
    send_frame(FRAME_RESET, expect_connect(), 0, NULL, 0);
}

static int ask(const void *query, size_t size)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_int_equal(sendto(fd, query, size, 0, (struct sockaddr *)&door_addresses[DOOR_LOOKUPS],
                            sizeof door_addresses[0]),
                     size);
    return fd;
}

static void a_query_is_passed_on_and_answered(void **state)
{
    static const char longest[4097];
    autofd int        a = ask("what is the name?", 17), b = -1;
    char              text[100] = "";
    struct frame      f = await(text);

    (void)state;
    assert_int_equal(f.type, FRAME_LOOKUP);
    assert_true(f.channel & CHANNEL_OF_INIT);
    assert_string_equal(text, "what is the name?");
    b = ask(longest, 4096);
    struct frame g = await(NULL);
    assert_int_equal(g.size, 4096);
    assert_int_equal(g.channel, f.channel + 1);
    assert_int_equal(send_frame(FRAME_FOUND, g.channel, 0, longest, 4096), 1);
    assert_int_equal(send_frame(FRAME_FOUND, f.channel, 0, "this is the answer", 18), 1);
    assert_int_equal(reads(a, text, sizeof text), 18);
    assert_memory_equal(text, "this is the answer", 18);
    assert_int_equal(reads(b, text, sizeof text), sizeof text);
    assert_int_equal(send_frame(FRAME_FOUND, f.channel, 0, "this is the answer", 18), 1);
    reads_nothing(a); /* once is enough */
    fd_close(&a);
    fd_close(&b);
    a = ask("too short..", 11);
    b = ask(longest, 4097);
    expect_nothing();
}

static void the_oldest_query_is_forgotten(void **state)
{
    int      fds[EGRESS_LOOKUPS_MAX + 1];
    uint32_t first = 0;
    char     text[100];

    (void)state;
    for (size_t i = 0; i < N(fds); i++) {
        fds[i] = ask("what is it like?", 16);
        struct frame f = await(NULL);
        assert_int_equal(f.type, FRAME_LOOKUP);
        first = i == 0 ? f.channel : first;
    }
    for (uint32_t i = 0; i < N(fds); i++) {
        assert_int_equal(send_frame(FRAME_FOUND, first + i, 0, "like an egg.", 12), 1);
        if (i == 0)
            reads_nothing(fds[i]);
        else
            assert_int_equal(reads(fds[i], text, sizeof text), 12);
        fd_close(&fds[i]);
    }
}

static void frames_of_unknown_connections_are_dropped(void **state)
{
    const uint32_t id = CHANNEL_OF_INIT | 0x7fffffff;

    (void)state;
    assert_int_equal(send_frame(FRAME_DATA, id, STREAM_IN, "x", 1), 1);
    assert_int_equal(send_frame(FRAME_END, id, STREAM_IN, NULL, 0), 1);
    assert_int_equal(send_u32(FRAME_CREDIT, id, STREAM_OUT, 1), 1);
    assert_int_equal(send_frame(FRAME_RESET, id, 0, NULL, 0), 1);
    assert_int_equal(send_frame(FRAME_FOUND, id, 0, "like an egg.", 12), 1);
    expect_nothing();
}

static void violations_on_a_connection_end_init(void **state)
{
    static const struct {
        enum frame_type type;
        uint8_t         stream;
        const char     *payload;
        size_t          size;
    } cases[] = {
        {FRAME_DATA, STREAM_OUT, "x", 1},
        {FRAME_DATA, STREAM_ERR, "x", 1},
        {FRAME_END, STREAM_OUT, "", 0},
        {FRAME_CREDIT, STREAM_IN, "\1\0\0\0", 4},
        {FRAME_CREDIT, STREAM_OUT, "\1\0\0\0", 4}, /* the window is full already */
        {FRAME_CREDIT, STREAM_OUT, "\xff\xff\xff\xff", 4},
        {FRAME_SIGNAL, 0, "\1\0\0\0", 4},
        {FRAME_SPAWN, 0, "\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0p\0\0\0\0\0", 24},
        {FRAME_WRITE_FILE, 0, "\0\0\0\0\1\0\0\0f\0", 10},
        {FRAME_CONNECT, 0, "123456789012345678", 18}, /* only init sends it */
        {FRAME_LOOKUP, 0, "123456789012", 12},
    };

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        autofd int code = dial();
        uint32_t   id = expect_connect();

        if (send_frame(cases[i].type, id, cases[i].stream, cases[i].payload, cases[i].size) != -1)
            fail_msg("case %zu, %s, was taken", i, frame_type_name(cases[i].type));
        start_over(id);
    }
    autofd int code = dial();
    uint32_t   id = expect_connect();
    assert_int_equal(send_frame(FRAME_END, id, STREAM_IN, NULL, 0), 1);
    assert_int_equal(send_frame(FRAME_END, id, STREAM_IN, NULL, 0), -1);
    start_over(id);
}

/* ---- dial: what happens to a connection then is as above ---- */

static struct server {
    int      fd;
    uint16_t port;
} server;

static void listen_inside(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size = sizeof a;

    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&a, size), 0);
    assert_int_equal(listen(server.fd, 200), 0);
    getsockname(server.fd, (struct sockaddr *)&a, &size);
    server.port = ntohs(a.sin_port);
}

static int open_server(void **state)
{
    ipv6_only = false;
    if (set_up(state) < 0)
        return -1;
    hello();
    listen_inside();
    return 0;
}

static int close_server(void **state)
{
    fd_close(&server.fd);
    return tear_down(state);
}

static int send_dial(uint32_t channel)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    message_pack_dial(&b, &(struct message_dial){server.port});
    return send_frame(FRAME_DIAL, channel, 0, b.data, b.size);
}

/* The server's end of a connection that init made. */
static int answer(uint32_t channel)
{
    int fd = -1;

    assert_int_equal(send_dial(channel), 1);
    await_frame(FRAME_STARTED, channel, 0);
    fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(fd >= 0);
    return fd;
}

static void a_port_inside_is_reached(void **state)
{
    autofd int code = answer(3);
    char       text[100] = "";

    (void)state;
    assert_int_equal(send_frame(FRAME_DATA, 3, STREAM_IN, "ping", 4), 1);
    assert_int_equal(reads(code, text, 4), 4);
    fd_write_all(code, "pong", 4);
    struct frame f = await(text);
    assert_int_equal(f.type, FRAME_DATA);
    assert_int_equal(f.channel, 3);
    assert_int_equal(f.stream, STREAM_OUT);
    assert_string_equal(text, "pong");
    assert_int_equal(send_frame(FRAME_END, 3, STREAM_IN, NULL, 0), 1);
    assert_int_equal(reads(code, text, 4), 0);
    fd_write_all(code, "late", 4);
    await_frame(FRAME_DATA, 3, STREAM_OUT);
    fd_close(&code);
    await_frame(FRAME_END, 3, STREAM_OUT);
    expect_nothing();
    assert_int_equal(send_frame(FRAME_DATA, 3, STREAM_IN, "x", 1), 1); /* it is no more */
    fd_close(&code);
    code = answer(3); /* so its number is free */
    assert_int_equal(send_frame(FRAME_RESET, 3, 0, NULL, 0), 1);
    assert_int_equal(reads(code, text, 4), -ECONNRESET);
}

static void who_listens_on_ipv6_alone_is_found(void **state)
{
    autofd int code = -1;

    (void)state;
    ipv6_only = true;
    code = answer(3);
    assert_int_equal(send_frame(FRAME_RESET, 3, 0, NULL, 0), 1);
}

static void a_port_without_a_listener_is_an_error(void **state)
{
    struct message_error m;
    struct frame         f;

    (void)state;
    fd_close(&server.fd);
    assert_int_equal(send_dial(3), 1);
    turn_within(10 * PATIENCE_MS);
    assert_true(frame_parse(received.data, received.size, PEER_INIT, &f, NULL) > 0);
    assert_int_equal(message_unpack_error(&f, &m, NULL), 0);
    assert_int_equal(m.sys, ECONNREFUSED);
    await_frame(FRAME_ERROR, 3, 0);
    expect_nothing();
    assert_int_equal(send_frame(FRAME_RESET, 3, 0, NULL, 0), 1); /* crossed it */
}

static void a_reset_by_the_server_inside_is_told(void **state)
{
    int code = answer(3);

    (void)state;
    fd_reset(&code);
    await_frame(FRAME_RESET, 3, 0);
    assert_int_equal(send_frame(FRAME_END, 3, STREAM_IN, NULL, 0), 1); /* crossed it */
    expect_nothing();
}

static void a_slow_server_inside_fills_a_window_and_no_more(void **state)
{
    static char bytes[WINDOW_CONNECTION];
    autofd int  code = answer(3);
    uint32_t    credit = WINDOW_CONNECTION;
    size_t      sent = 0, taken = 0;
    long        n;

    (void)state;
    while (credit > 0) {
        assert_int_equal(send_data(3, bytes, credit), 1);
        sent += credit;
        credit = credit_given(3);
        assert_true(sent < 32 << 20);
    }
    assert_int_equal(send_frame(FRAME_END, 3, STREAM_IN, NULL, 0), 1);
    while ((n = reads(code, bytes, sizeof bytes)) > 0)
        taken += (size_t)n;
    assert_int_equal(n, 0);
    assert_int_equal(taken, sent);
    credit_given(3);
    fd_close(&code);
    await_frame(FRAME_END, 3, STREAM_OUT);
}

static void dials_are_counted(void **state)
{
    int codes[DIALS_MAX];

    (void)state;
    for (uint32_t i = 0; i < DIALS_MAX; i++)
        codes[i] = answer(i + 1);
    assert_int_equal(send_dial(DIALS_MAX + 1), 1);
    await_frame(FRAME_ERROR, DIALS_MAX + 1, 0);
    fd_reset(&codes[7]);
    await_frame(FRAME_RESET, 8, 0);
    codes[7] = answer(DIALS_MAX + 2); /* its place is free again */
    for (uint32_t i = 1; i <= DIALS_MAX + 2; i++)
        assert_int_equal(send_frame(FRAME_RESET, i, 0, NULL, 0), 1);
    for (uint32_t i = 0; i < DIALS_MAX; i++)
        fd_close(&codes[i]);
}

/* ---- read-file ---- */

static int read_file(uint32_t channel, const char *path, uint64_t most)
{
    autobuf struct buf b;

    buf_init(&b, 1000);
    message_pack_read_file(&b, &(struct message_read_file){most, path});
    return send_frame(FRAME_READ_FILE, channel, 0, b.data, b.size);
}

static void put_file(const char *name, const char *bytes, size_t size)
{
    autofd int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    assert_int_equal(fd_write_all(fd, bytes, size), 0);
}

static uint64_t expect_opened(uint32_t channel)
{
    struct message_opened m;
    struct frame          f;

    turn();
    assert_true(frame_parse(received.data, received.size, PEER_INIT, &f, NULL) > 0);
    assert_int_equal(f.type, FRAME_OPENED);
    assert_int_equal(message_unpack_opened(&f, &m, NULL), 0);
    expect(FRAME_OPENED, channel, 0);
    return m.size;
}

static void a_file_is_read(void **state)
{
    char text[100];

    (void)state;
    hello();
    put_file("x", "hello world", 11);
    assert_int_equal(read_file(5, "x", 1000), 1);
    assert_int_equal(expect_opened(5), 11);
    struct frame f = next(text);
    assert_int_equal(f.type, FRAME_DATA);
    assert_int_equal(f.stream, STREAM_OUT);
    assert_string_equal(text, "hello world");
    expect(FRAME_END, 5, STREAM_OUT);
    assert_int_equal(read_file(5, "x", 5), 1); /* the number is free; only the beginning */
    assert_int_equal(expect_opened(5), 11);
    next(text);
    assert_string_equal(text, "hello");
    expect(FRAME_END, 5, STREAM_OUT);
    assert_int_equal(read_file(5, "x", 0), 1);
    assert_int_equal(expect_opened(5), 11);
    expect(FRAME_END, 5, STREAM_OUT);
    expect_nothing();
}

/* A file without an end, as far as anybody will read. */
static void put_huge_file(void)
{
    put_file("x", "", 0);
    assert_int_equal(truncate(in_dir("x"), 1LL << 40), 0);
}

static void a_huge_file_needs_credit_and_can_be_given_up(void **state)
{
    struct frame f;
    size_t       sum = 0;

    (void)state;
    hello();
    put_huge_file();
    assert_int_equal(read_file(5, "x", UINT64_MAX), 1);
    assert_int_equal(expect_opened(5), 1LL << 40);
    while ((f = next(NULL)).type) {
        assert_int_equal(f.type, FRAME_DATA);
        sum += f.size;
    }
    assert_int_equal(sum, WINDOW_FROM_INIT);
    assert_false(reader_is_busy());
    assert_int_equal(send_u32(FRAME_CREDIT, 5, STREAM_OUT, 1000), 1);
    f = next(NULL);
    assert_int_equal(f.size, 1000);
    assert_int_equal(send_frame(FRAME_RESET, 5, 0, NULL, 0), 1);
    expect_nothing();
    assert_int_equal(send_u32(FRAME_CREDIT, 5, STREAM_OUT, 1000), 1); /* crossed it */
}

static int make_trap_links(void)
{
    return symlink("/etc/passwd", in_dir("absolute")) + symlink("x", in_dir("link")) +
           symlink("..", in_dir("up")) + symlink("/proc/self/fd/0", in_dir("fd"));
}

static void remove_trap_links(void)
{
    unlink(in_dir("absolute"));
    unlink(in_dir("link"));
    unlink(in_dir("up"));
    unlink(in_dir("fd"));
}

static void only_regular_files_below_are_read(void **state)
{
    static const char *const refused[] = {"absolute", "link", "fd", "up/etc/passwd", "fifo", "up",
                                          "missing",  "x/y",  "d"};

    (void)state;
    hello();
    put_file("x", "hello", 5);
    assert_int_equal(make_trap_links(), 0);
    assert_int_equal(mkfifo(in_dir("fifo"), 0644), 0);
    assert_int_equal(mkdir(in_dir("d"), 0755), 0);
    for (size_t i = 0; i < N(refused); i++) {
        assert_int_equal(read_file(5, refused[i], 1000), 1);
        struct frame f = next(NULL);
        if (f.type != FRAME_ERROR)
            fail_msg("%s was opened", refused[i]);
        expect_nothing();
    }
    remove_trap_links();
    unlink(in_dir("fifo"));
    rmdir(in_dir("d"));
}

static void readers_are_counted(void **state)
{
    (void)state;
    hello();
    put_huge_file();
    for (uint32_t i = 1; i <= READERS_MAX; i++)
        assert_int_equal(read_file(i, "x", UINT64_MAX), 1);
    assert_int_equal(read_file(READERS_MAX + 1, "x", 1), 1);
    for (uint32_t i = 1; i <= READERS_MAX; i++)
        assert_int_equal(send_frame(FRAME_RESET, i, 0, NULL, 0), 1);
    for (uint32_t i = 1; i <= READERS_MAX; i++)
        expect(FRAME_OPENED, i, 0);
    expect(FRAME_ERROR, READERS_MAX + 1, 0);
    expect_nothing();
}

/* ---- scan ---- */

static int scan(uint32_t channel, const char *path, uint32_t entries, uint32_t depth)
{
    autobuf struct buf b;

    buf_init(&b, 1000);
    message_pack_scan(&b, &(struct message_scan){entries, depth, path});
    return send_frame(FRAME_SCAN, channel, 0, b.data, b.size);
}

/* Until the scan is over: its rows, as " path:kind:size" in their order; how many; whether cut. */
static size_t rows_of(uint32_t channel, struct buf *text, bool *ret_cut)
{
    struct message_scanned m;
    struct message_row     row;
    size_t                 n = 0;

    for (int i = 0; i < 10000; i++) {
        struct frame f;
        long         size;

        turn();
        size = frame_parse(received.data, received.size, PEER_INIT, &f, NULL);
        if (size == 0)
            continue;
        assert_int_equal(f.channel, channel);
        if (f.type == FRAME_SCANNED) {
            assert_int_equal(message_unpack_scanned(&f, &m, NULL), 0);
            *ret_cut = m.cut;
            buf_drop(&received, (size_t)size);
            return n;
        }
        assert_int_equal(f.type, FRAME_ROWS);
        while (message_next_row(&f, &row, NULL) > 0) {
            assert_true(row.mtime_ns > 1500000000000000000);
            if (text)
                buf_printf(text, " %s:%d:%d", row.path, row.kind,
                           row.kind == ROW_FILE ? (int)row.size : 0);
            n++;
        }
        assert_int_equal(f.size, 0);
        buf_drop(&received, (size_t)size);
    }
    fail_msg("the scan does not end");
    return 0;
}

static void a_tree_is_told_level_by_level(void **state)
{
    autobuf struct buf text;
    bool               cut = true;

    (void)state;
    hello();
    buf_init(&text, 4096);
    assert_int_equal(mkdir(in_dir("d"), 0755), 0);
    assert_int_equal(mkdir(in_dir("d/e"), 0755), 0);
    put_file("d/e/f", "123", 3);
    assert_int_equal(symlink("/", in_dir("d/e/l")), 0);
    assert_int_equal(mkfifo(in_dir("d/e/p"), 0644), 0);

    assert_int_equal(scan(5, "", 100, 1), 1);
    assert_int_equal(rows_of(5, &text, &cut), 1);
    assert_string_equal(buf_text(&text), " d:1:0");
    assert_false(cut); /* as deep as was asked */
    text.size = 0;
    assert_int_equal(scan(5, "", 100, 10), 1);
    assert_int_equal(rows_of(5, &text, &cut), 5);
    assert_memory_equal(buf_text(&text), " d:1:0 d/e:1:0 ", 15);
    assert_non_null(strstr(buf_text(&text), " d/e/f:0:3"));
    assert_non_null(strstr(buf_text(&text), " d/e/l:2:0")); /* and nothing behind it */
    assert_non_null(strstr(buf_text(&text), " d/e/p:3:0"));
    assert_false(cut);
    text.size = 0;
    assert_int_equal(scan(5, "d", 100, 1), 1);
    assert_int_equal(rows_of(5, &text, &cut), 1);
    assert_string_equal(buf_text(&text), " d/e:1:0");
    text.size = 0;
    assert_int_equal(scan(5, "d", 2, 2), 1);
    assert_int_equal(rows_of(5, &text, &cut), 2);
    assert_true(cut);
    expect_nothing();

    unlink(in_dir("d/e/f"));
    unlink(in_dir("d/e/l"));
    unlink(in_dir("d/e/p"));
    rmdir(in_dir("d/e"));
    rmdir(in_dir("d"));
}

static void what_is_no_directory_below_is_not_scanned(void **state)
{
    static const char *const refused[] = {"up", "absolute", "fd", "link", "x", "missing", "up/tmp"};

    (void)state;
    hello();
    put_file("x", "", 0);
    assert_int_equal(make_trap_links(), 0);
    for (size_t i = 0; i < N(refused); i++) {
        assert_int_equal(scan(5, refused[i], 100, 3), 1);
        expect(FRAME_ERROR, 5, 0);
        expect_nothing();
    }
    remove_trap_links();
}

static void a_large_directory_is_told_in_slices(void **state)
{
    enum { MANY = 3000 };
    char name[20];
    bool cut = true;

    (void)state;
    hello();
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%d", i);
        put_file(name, "", 0);
    }
    assert_int_equal(scan(5, "", MANY + 1, 1), 1);
    turn();
    assert_true(scan_is_busy());
    assert_true(received.size < 400 * 30); /* some hundred rows */
    assert_int_equal(rows_of(5, NULL, &cut), MANY);
    assert_false(cut);
    for (uint32_t i = 1; i <= SCANS_MAX; i++)
        assert_int_equal(scan(i, "", MANY, 1), 1);
    assert_int_equal(scan(9, "", MANY, 1), 1); /* one too many */
    for (uint32_t i = 1; i <= SCANS_MAX; i++)
        assert_int_equal(send_frame(FRAME_RESET, i, 0, NULL, 0), 1);
    assert_false(scan_is_busy());
    expect(FRAME_ERROR, 9, 0);
    expect_nothing();
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%d", i);
        unlink(in_dir(name));
    }
}

/* ---- frames that fit none of these three ---- */

static void violations_inside_end_init(void **state)
{
    static const struct {
        enum frame_type type;
        uint32_t        channel;
        uint8_t         stream;
        const char     *payload;
        size_t          size;
    } cases[] = {
        {FRAME_DIAL, 0, 0, "\1\0", 2},
        {FRAME_DIAL, 9, 0, "\0\0", 2}, /* port 0 */
        {FRAME_DIAL, 1, 0, "\1\0", 2}, /* taken, as are the next */
        {FRAME_DIAL, 2, 0, "\1\0", 2},
        {FRAME_DIAL, 3, 0, "\1\0", 2},
        {FRAME_DIAL, 4, 0, "\1\0", 2},
        {FRAME_SPAWN, 2, 0, "\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0p\0\0\0\0\0", 24},
        {FRAME_WRITE_FILE, 3, 0, "\0\0\0\0\1\0\0\0f\0", 10},
        {FRAME_READ_FILE, 4, 0, "\1\0\0\0\0\0\0\0\1\0\0\0x\0", 14},
        {FRAME_READ_FILE, 0, 0, "\1\0\0\0\0\0\0\0\1\0\0\0x\0", 14},
        {FRAME_READ_FILE, 9, 0, "\1\0\0\0\0\0\0\0\0\0\0\0\0", 13}, /* no path */
        {FRAME_READ_FILE, 9, 0, "\1\0\0\0\0\0\0\0\2\0\0\0..\0", 15},
        {FRAME_READ_FILE, 9, 0, "\1\0\0\0\0\0\0\0\2\0\0\0/x\0", 15},
        {FRAME_READ_FILE, 9, 0, "\1\0\0\0\0\0\0\0\4\0\0\0x/..\0", 17},
        {FRAME_SCAN, 1, 0, "\1\0\0\0\1\0\0\0\0\0\0\0\0", 13},
        {FRAME_SCAN, 9, 0, "\1\0\0\0\1\0\0\0\1\0\0\0.\0", 14},
        {FRAME_SCAN, 9, 0, "\1\0\0\0\1\0\0\0\2\0\0\0x/\0", 15},
        {FRAME_DATA, 2, STREAM_OUT, "x", 1},
        {FRAME_CREDIT, 2, STREAM_OUT, "\1\0\0\0", 4}, /* the window is full already */
        {FRAME_SIGNAL, 2, 0, "\1\0\0\0", 4},
        {FRAME_DATA, 3, STREAM_IN, "x", 1},
        {FRAME_END, 3, STREAM_IN, "", 0},
        {FRAME_CREDIT, 3, STREAM_IN, "\1\0\0\0", 4},
        {FRAME_CREDIT, 3, STREAM_OUT, "\xff\xff\xff\xff", 4},
        {FRAME_DATA, 4, STREAM_IN, "x", 1},
        {FRAME_CREDIT, 4, STREAM_OUT, "\1\0\0\0", 4},
        {FRAME_RESET, 1, 0, "", 0}, /* not for a process */
    };

    (void)state;
    hello();
    listen_inside();
    put_huge_file();
    assert_int_equal(spawn(1, "/p", false), 1);
    expect(FRAME_STARTED, 1, 0);
    autofd int code = answer(2);
    for (size_t i = 0; i < N(cases); i++) {
        assert_int_equal(read_file(3, "x", UINT64_MAX), 1);
        assert_int_equal(scan(4, "", 1000, 1), 1);
        if (send_frame(cases[i].type, cases[i].channel, cases[i].stream, cases[i].payload,
                       cases[i].size) != -1)
            fail_msg("case %zu, %s, was taken", i, frame_type_name(cases[i].type));
        start_over(3);
        assert_int_equal(send_frame(FRAME_RESET, 4, 0, NULL, 0), 1);
    }
    assert_int_equal(send_frame(FRAME_RESET, 2, 0, NULL, 0), 1);
    assert_int_equal(send_dial(2), 1);
    assert_int_equal(send_frame(FRAME_DATA, 2, STREAM_IN, "x", 1), -1); /* it has not started */
    start_over(2);
    fd_close(&server.fd);
}

#define DIAL_TEST(f) cmocka_unit_test_setup_teardown(f, open_server, close_server)
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define EGRESS_TEST(f) cmocka_unit_test_setup_teardown(f, open_doors_once, tear_down)
#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(init_says_hello),
        TEST(hello_comes_first_and_once),
        TEST(nothing_comes_before_hello),
        TEST(another_version_is_refused),
        TEST(frames_come_in_pieces),
        TEST(the_end_of_input_is_no_error),
        TEST(stdin_flows_and_gives_credit_back),
        TEST(stdin_has_a_window),
        TEST(what_waits_goes_out_before_the_end),
        TEST(an_end_leaves_in_one_write),
        TEST(a_program_may_close_its_stdin),
        TEST(without_stdin_data_is_dropped),
        TEST(output_is_relayed_to_its_end),
        TEST(output_needs_credit),
        TEST(an_exit_is_told_with_its_usage),
        TEST(a_program_that_cannot_start_is_an_error),
        TEST(unknown_channels_are_dropped),
        TEST(violations_end_init),
        FILE_TEST(a_file_appears_whole),
        FILE_TEST(a_file_that_cannot_be_made_is_an_error),
        FILE_TEST(a_file_that_gets_no_name_leaves_nothing),
        FILE_TEST(channels_are_counted),
        EGRESS_TEST(a_connection_is_told_with_its_destination),
        EGRESS_TEST(bytes_go_both_ways),
        EGRESS_TEST(what_code_sends_needs_credit),
        EGRESS_TEST(slow_code_fills_a_window_and_no_more),
        EGRESS_TEST(the_window_of_slow_code_holds),
        EGRESS_TEST(code_may_half_close),
        EGRESS_TEST(the_server_may_half_close),
        EGRESS_TEST(poll_sleeps_when_both_are_shut_and_credit_is_missing),
        EGRESS_TEST(the_server_resets_at_once),
        EGRESS_TEST(a_reset_of_code_is_told),
        EGRESS_TEST(who_knocks_at_the_door_itself_is_reset),
        EGRESS_TEST(connections_are_counted),
        EGRESS_TEST(without_descriptors_code_is_reset),
        EGRESS_TEST(a_query_is_passed_on_and_answered),
        EGRESS_TEST(the_oldest_query_is_forgotten),
        EGRESS_TEST(frames_of_unknown_connections_are_dropped),
        EGRESS_TEST(violations_on_a_connection_end_init),
        DIAL_TEST(a_port_inside_is_reached),
        DIAL_TEST(who_listens_on_ipv6_alone_is_found),
        DIAL_TEST(a_port_without_a_listener_is_an_error),
        DIAL_TEST(a_reset_by_the_server_inside_is_told),
        DIAL_TEST(a_slow_server_inside_fills_a_window_and_no_more),
        DIAL_TEST(dials_are_counted),
        FILE_TEST(a_file_is_read),
        FILE_TEST(a_huge_file_needs_credit_and_can_be_given_up),
        FILE_TEST(only_regular_files_below_are_read),
        FILE_TEST(readers_are_counted),
        FILE_TEST(a_tree_is_told_level_by_level),
        FILE_TEST(what_is_no_directory_below_is_not_scanned),
        FILE_TEST(a_large_directory_is_told_in_slices),
        FILE_TEST(violations_inside_end_init),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
