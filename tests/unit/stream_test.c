#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "loop/stream.h"

/* An owner that takes at most `take` bytes a call and notes what it was told. */
struct owner {
    struct event_base *base;
    size_t             take, offered;
    struct buf         got;
    int                calls, ends, broken, sys;
    size_t             left;
};

static void on_input(void *arg, struct buf *in, bool ended)
{
    struct owner *o = arg;
    size_t        n = in->size < o->take ? in->size : o->take;

    o->calls++;
    o->ends += ended;
    o->offered = in->size;
    if (n > 0)
        assert_int_equal(buf_add(&o->got, in->data, n), 0);
    buf_drop(in, n);
}

static void on_left(void *arg, size_t bytes)
{
    ((struct owner *)arg)->left += bytes;
}

static void on_broken(void *arg, int sys)
{
    struct owner *o = arg;

    o->broken++;
    o->sys = sys;
}

static const struct stream_ops ops = {on_input, on_left, on_broken};

static int set_up(void **state)
{
    static struct owner o;

    signal(SIGPIPE, SIG_IGN);
    o = (struct owner){.base = event_base_new(), .take = SIZE_MAX};
    buf_init(&o.got, 4 << 20);
    *state = &o;
    return 0;
}

static int tear_down(void **state)
{
    struct owner *o = *state;

    buf_done(&o->got);
    event_base_free(o->base);
    return 0;
}

/* Both ends are in this process: whatever can happen has happened after a few turns. */
static void turn(struct owner *o)
{
    for (int i = 0; i < 8; i++)
        event_base_loop(o->base, EVLOOP_NONBLOCK);
}

static void open_pipe(int *ret_read, int *ret_write, int size)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_true(fcntl(ends[0], F_SETPIPE_SZ, size) >= size);
    *ret_read = ends[0];
    *ret_write = ends[1];
}

static void fill(int fd, size_t size)
{
    static const char zeros[65536];

    for (; size > 0; size -= size < sizeof zeros ? size : sizeof zeros)
        assert_int_equal(fd_write_all(fd, zeros, size < sizeof zeros ? size : sizeof zeros), 0);
}

static size_t drain(int fd)
{
    char    bytes[65536];
    size_t  sum = 0;
    ssize_t n;

    fd_set_nonblock(fd, true);
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        sum += (size_t)n;
    return sum;
}

static void input_is_offered_again(void **state)
{
    struct owner *o = *state;
    int           in, to;

    open_pipe(&in, &to, 4096);
    struct stream *s = stream_new(o->base, in, -1, 1000, 0, &ops, o);
    turn(o);
    assert_int_equal(o->calls, 0); /* nothing to tell yet */
    o->take = 1;
    fd_write_all(to, "abc", 3);
    turn(o);
    assert_int_equal(o->calls, 1); /* not again before something changes */
    fd_write_all(to, "d", 1);
    turn(o);
    assert_int_equal(o->offered, 3);
    assert_int_equal(o->calls, 2);
    stream_offer(s);
    stream_offer(s);
    assert_int_equal(o->calls, 2); /* from the loop, once */
    turn(o);
    assert_int_equal(o->calls, 3);
    assert_memory_equal(o->got.data, "abc", 3);
    close(to);
    o->take = 0;
    turn(o);
    assert_int_equal(o->offered, 1); /* the end, with what is left */
    assert_int_equal(o->ends, 1);
    turn(o);
    assert_int_equal(o->ends, 1);
    stream_free(s);
}

static void a_full_buffer_stops_the_reading(void **state)
{
    struct owner *o = *state;
    int           in, to, waiting;

    open_pipe(&in, &to, 65536);
    struct stream *s = stream_new(o->base, in, -1, 1000, 0, &ops, o);
    o->take = 0;
    fill(to, 65536);
    turn(o);
    assert_int_equal(o->offered, 65536); /* one read may pass the mark, no second one */
    fill(to, 65536);
    turn(o);
    assert_int_equal(o->offered, 65536);
    ioctl(in, FIONREAD, &waiting);
    assert_int_equal(waiting, 65536); /* so that the writer waits */
    o->take = SIZE_MAX;
    stream_offer(s);
    turn(o);
    assert_int_equal(o->got.size, 2 * 65536);
    stream_free(s);
    close(to);
}

static void the_queue_has_a_maximum(void **state)
{
    static const char bytes[20000];
    struct owner     *o = *state;
    int               from, out;
    size_t            sum = 0;

    open_pipe(&from, &out, 4096);
    struct stream *s = stream_new(o->base, -1, out, 0, 10000, &ops, o);
    assert_int_equal(stream_write(s, bytes, 10001), -1);
    assert_int_equal(stream_write(s, bytes, 10000), 0); /* 4096 of it go out at once */
    assert_int_equal(stream_queued(s), 10000 - 4096);
    assert_int_equal(stream_write(s, bytes, 4097), -1);
    assert_int_equal(stream_write(s, bytes, 4096), 0);
    assert_int_equal(stream_queued(s), 10000);
    assert_int_equal(stream_write(s, bytes, 1), -1);
    assert_int_equal(o->left, 0); /* no op before the loop turns */
    while (sum < 14096) {
        turn(o);
        assert_true(o->left <= sum + 4096);
        sum += drain(from);
        assert_true(o->left >= sum);
    }
    turn(o);
    assert_int_equal(o->left, 14096); /* all of it, once */
    assert_int_equal(stream_queued(s), 0);
    stream_free(s);
    close(from);
}

static void broken_output_is_told_once(void **state)
{
    struct owner *o = *state;
    int           from, out;

    open_pipe(&from, &out, 4096);
    struct stream *s = stream_new(o->base, -1, out, 0, 10000, &ops, o);
    assert_int_equal(stream_write(s, (char[6000]){0}, 6000), 0);
    turn(o);
    close(from);
    turn(o); /* found by the loop, with bytes in the queue */
    assert_int_equal(o->broken, 1);
    assert_int_equal(o->sys, EPIPE);
    assert_int_equal(stream_queued(s), 0);
    for (int i = 0; i < 3; i++) /* swallowed: the owner knows */
        assert_int_equal(stream_write(s, (char[20000]){0}, 20000), 0);
    turn(o);
    assert_int_equal(o->broken, 1);
    assert_int_equal(o->left, 66000); /* what is dropped has left, or its sender would wait */
    stream_free(s);
}

static void a_write_that_breaks_is_told_from_the_loop(void **state)
{
    struct owner *o = *state;
    int           from, out;

    open_pipe(&from, &out, 4096);
    close(from);
    struct stream *s = stream_new(o->base, -1, out, 0, 10000, &ops, o);
    assert_int_equal(stream_write(s, "x", 1), 0);
    assert_int_equal(o->broken, 0);
    turn(o);
    assert_int_equal(o->broken, 1);
    stream_free(s);
}

/* What epoll refuses. */
static void dev_null_ends_at_once(void **state)
{
    struct owner  *o = *state;
    int            in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int            out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct stream *s = stream_new(o->base, in, out, 1000, 1000, &ops, o);

    assert_int_equal(o->calls, 0);
    assert_int_equal(stream_write(s, "abc", 3), 0);
    turn(o);
    assert_int_equal(o->left, 3);
    assert_int_equal(o->calls, 1);
    assert_int_equal(o->ends, 1);
    stream_free(s);
}

static void dev_full_is_broken(void **state)
{
    struct owner  *o = *state;
    int            out = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct stream *s = stream_new(o->base, -1, out, 0, 1000, &ops, o);

    assert_int_equal(stream_write(s, "abc", 3), 0);
    turn(o);
    assert_int_equal(o->broken, 1);
    assert_int_equal(o->sys, ENOSPC);
    assert_int_equal(o->left, 3);
    stream_free(s);
}

static void regular_files_are_read_to_their_end(void **state)
{
    struct owner *o = *state;
    int           in = memfd_create("in", MFD_CLOEXEC);

    fill(in, 300000);
    lseek(in, 0, SEEK_SET);
    struct stream *s = stream_new(o->base, in, -1, 1000, 0, &ops, o);
    o->take = 0;
    turn(o);
    assert_int_equal(o->offered, 131072); /* one read; the mark holds for files too */
    assert_int_equal(o->ends, 0);
    o->take = 100000;
    for (int i = 0; i < 8; i++) {
        stream_offer(s);
        turn(o);
    }
    assert_int_equal(o->got.size, 300000);
    assert_true(o->ends >= 1);
    int calls = o->calls;
    turn(o); /* nothing left to say: the loop must not spin */
    assert_int_equal(o->calls, calls);
    stream_free(s);
}

static void one_socket_serves_both_ways(void **state)
{
    struct owner *o = *state;
    int           ends[2];
    char          bytes[4] = {0};

    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    struct stream *s = stream_new(o->base, ends[0], ends[0], 1000, 1000, &ops, o);
    fd_write_all(ends[1], "in", 2);
    stream_write(s, "out", 3);
    turn(o);
    assert_memory_equal(o->got.data, "in", 2);
    assert_int_equal(read(ends[1], bytes, sizeof bytes), 3);
    close(ends[1]);
    turn(o);
    assert_int_equal(o->ends, 1);
    stream_free(s); /* closes it once: ASan and valgrind would not see twice, the next line does */
    assert_int_equal(fcntl(ends[0], F_GETFD), -1);
}

static void reopened_descriptors_are_ours_alone(void **state)
{
    autofd int file = memfd_create("in", MFD_CLOEXEC);
    int        in, to;
    char       byte;

    (void)state;
    open_pipe(&in, &to, 4096);
    autofd int again = stream_reopen(in, O_RDONLY);
    assert_true(fcntl(again, F_GETFL) & O_NONBLOCK);
    assert_false(fcntl(in, F_GETFL) & O_NONBLOCK);
    assert_int_equal(fcntl(again, F_GETFD), FD_CLOEXEC);
    fd_write_all(to, "x", 1);
    assert_int_equal(read(again, &byte, 1), 1);
    fd_close(&in);
    fd_close(&to);

    fd_write_all(file, "ab", 2); /* a file keeps its place */
    lseek(file, 1, SEEK_SET);
    autofd int copy = stream_reopen(file, O_RDONLY);
    assert_int_equal(read(copy, &byte, 1), 1);
    assert_int_equal(byte, 'b');
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(input_is_offered_again),
        TEST(a_full_buffer_stops_the_reading),
        TEST(the_queue_has_a_maximum),
        TEST(broken_output_is_told_once),
        TEST(a_write_that_breaks_is_told_from_the_loop),
        TEST(dev_null_ends_at_once),
        TEST(dev_full_is_broken),
        TEST(regular_files_are_read_to_their_end),
        TEST(one_socket_serves_both_ways),
        TEST(reopened_descriptors_are_ours_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
