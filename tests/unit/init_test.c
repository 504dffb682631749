/* jerboa-init's own code, with the ordinary compiler, around a world of the test's making: the
 * programs it starts are pipes and a child that waits to be killed; its files are real, in a
 * temporary directory. Only main.c and world.c are not here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/channel.h"
#include "init/inbox.h"
#include "init/outbox.h"
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
    *ret = (struct launched){program.pid, in[1], out[0], err[0]};
    return 0;
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

bool world_disk_is_full(void)
{
    return disk_is_full;
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

/* One round of init's loop without waiting, and what it sent taken off its stdout. */
static void turn(void)
{
    struct pollfd polls[CHANNEL_POLLS_MAX];
    ssize_t       n;

    poll(polls, channel_fill_polls(polls), 0);
    channel_ready(polls);
    while ((n = read(from_init, buf_reserve(&received, 1 << 16), 1 << 16)) > 0)
        received.size += (size_t)n;
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
        waitid(P_PID, (id_t)program.pid, NULL, WEXITED | WNOWAIT);
        channel_reap();
    }
    program.pid = 0;
    for (int i = 0; i < 32; i++) /* what its pipes still hold, then their ends */
        turn();
}

static int tear_down(void **state)
{
    struct pollfd polls[CHANNEL_POLLS_MAX];

    (void)state;
    end_program();
    dup2(saved_stdout, 1);
    close(saved_stdout);
    close(to_init);
    close(init_in);
    close(from_init);
    inbox_done(&inbox);
    buf_done(&received);
    return channel_fill_polls(polls) == 0 ? 0 : -1; /* every test leaves the table empty */
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
    assert_int_equal(send_u32(FRAME_SIGNAL, 1, 0, SIGTERM), 1);
    waitid(P_PID, (id_t)program.pid, NULL, WEXITED | WNOWAIT);
    channel_reap();
    turn();
    assert_true(frame_parse(received.data, received.size, PEER_INIT, &f, NULL) > 0);
    assert_int_equal(f.type, FRAME_EXITED);
    assert_int_equal(message_unpack_exited(&f, &m, NULL), 0);
    assert_int_equal(m.code, -1);
    assert_int_equal(m.signal, SIGTERM);
    assert_true(m.disk_full);
    assert_true(m.max_rss_bytes > 0);
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

static char dir[] = "/tmp/init_test.XXXXXX";

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

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
