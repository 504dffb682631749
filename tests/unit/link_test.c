#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "pipe/link.h"

struct owner {
    struct event_base *base;
    struct link       *link;
    int                to, from; /* the peer's ends */
    int                frames, ends;
    struct frame       last; /* its payload is gone by now */
    char               text[100];
    struct err         err;
};

static void on_frame(void *arg, const struct frame *f)
{
    struct owner *o = arg;

    o->frames++;
    o->last = *f;
    memcpy(o->text, f->payload, f->size < sizeof o->text ? f->size : sizeof o->text);
}

static void on_ended(void *arg, const struct err *e)
{
    struct owner *o = arg;

    o->ends++;
    o->err = *e;
}

static const struct link_ops ops = {on_frame, on_ended, NULL};

static int set_up(void **state)
{
    static struct owner o;
    int                 in[2], out[2];

    signal(SIGPIPE, SIG_IGN);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return -1;
    o = (struct owner){.base = event_base_new(), .to = in[1], .from = out[0]};
    o.link = link_new(o.base, in[0], out[1], PEER_INIT, &ops, &o);
    *state = &o;
    return 0;
}

static int tear_down(void **state)
{
    struct owner *o = *state;

    link_free(o->link);
    event_base_free(o->base);
    fd_close(&o->to);
    fd_close(&o->from);
    return 0;
}

static void turn(struct owner *o)
{
    for (int i = 0; i < 8; i++)
        event_base_loop(o->base, EVLOOP_NONBLOCK);
}

static void add(struct buf *b, enum frame_type type, const char *payload)
{
    struct frame f = {type, STREAM_OUT, 7, (const uint8_t *)payload, strlen(payload)};

    assert_int_equal(frame_add(b, &f), 0);
}

static void frames_come_in_pieces(void **state)
{
    struct owner      *o = *state;
    autobuf struct buf b;

    buf_init(&b, 1000);
    add(&b, FRAME_DATA, "hello");
    size_t first = b.size;
    add(&b, FRAME_END, "");
    for (size_t i = 0; i < b.size; i++) {
        fd_write_all(o->to, b.data + i, 1);
        turn(o);
        assert_int_equal(o->frames, i + 1 == b.size ? 2 : i + 1 >= first ? 1 : 0);
        if (i + 1 == first) {
            assert_int_equal(o->last.type, FRAME_DATA);
            assert_int_equal(o->last.channel, 7);
            assert_memory_equal(o->text, "hello", 5);
        }
    }
    assert_int_equal(o->last.type, FRAME_END);
    assert_int_equal(o->ends, 0);
}

static void many_frames_come_at_once(void **state)
{
    struct owner      *o = *state;
    autobuf struct buf b;

    buf_init(&b, 60000);
    for (int i = 0; i < 2000; i++)
        add(&b, FRAME_DATA, "x");
    fd_write_all(o->to, b.data, b.size);
    fd_close(&o->to);
    turn(o);
    assert_int_equal(o->frames, 2000);
    assert_int_equal(o->ends, 1);
    assert_int_equal(o->err.kind, ERR_NONE); /* a plain end */
}

static void an_end_in_a_frame_is_an_error(void **state)
{
    autobuf struct buf b;

    buf_init(&b, 1000);
    add(&b, FRAME_DATA, "hello");
    for (size_t n = 1; n < b.size; n++) {
        struct owner *o = *state;

        fd_write_all(o->to, b.data, n);
        fd_close(&o->to);
        turn(o);
        assert_int_equal(o->frames, 0);
        assert_int_equal(o->ends, 1);
        assert_int_equal(o->err.kind, ERR_INVALID);
        assert_string_equal(o->err.msg, "the pipe ended in the middle of a frame");
        tear_down(state);
        set_up(state);
    }
}

static void a_broken_frame_ends_it_once(void **state)
{
    struct owner      *o = *state;
    autobuf struct buf b;

    buf_init(&b, 1000);
    add(&b, FRAME_DATA, "good");
    add(&b, FRAME_SPAWN, "init may not");
    add(&b, FRAME_DATA, "too late");
    fd_write_all(o->to, b.data, b.size);
    turn(o);
    assert_int_equal(o->frames, 1);
    assert_int_equal(o->ends, 1);
    assert_string_equal(o->err.msg, "spawn frame from a peer that may not send it");
    fd_write_all(o->to, b.data, b.size); /* nothing is looked at any more */
    turn(o);
    fd_close(&o->to);
    turn(o);
    assert_int_equal(o->frames, 1);
    assert_int_equal(o->ends, 1);
}

static void frames_leave_whole(void **state)
{
    struct owner *o = *state;
    uint8_t       bytes[1000];
    struct frame  f;

    link_send(o->link, FRAME_DATA, 9, STREAM_IN, "abc", 3);
    link_send(o->link, FRAME_HELLO, 0, 0, "12345678", 8);
    link_send(o->link, FRAME_END, 9, STREAM_IN, NULL, 0);
    ssize_t n = read(o->from, bytes, sizeof bytes);
    assert_int_equal(n, 3 * FRAME_HEADER + 3 + 8);
    assert_int_equal(frame_parse(bytes, (size_t)n, PEER_SERVER, &f, NULL), FRAME_HEADER + 3);
    assert_int_equal(f.type, FRAME_DATA);
    assert_int_equal(f.channel, 9);
    assert_memory_equal(f.payload, "abc", 3);
}

/* A peer that takes nothing is given 16 MiB, then up. */
static void a_peer_that_takes_nothing_is_given_up(void **state)
{
    static const uint8_t bytes[FRAME_MAX];
    struct owner        *o = *state;

    for (int i = 0; i < 15; i++)
        link_send(o->link, FRAME_SPAWN, 1, 0, bytes, sizeof bytes);
    assert_int_equal(o->ends, 0);
    for (int i = 0; i < 3; i++)
        link_send(o->link, FRAME_SPAWN, 1, 0, bytes, sizeof bytes);
    turn(o);
    assert_int_equal(o->ends, 1);
    assert_int_equal(o->err.kind, ERR_LIMIT);
}

static void a_peer_that_is_gone_ends_it(void **state)
{
    struct owner      *o = *state;
    autobuf struct buf b;

    buf_init(&b, 100);
    add(&b, FRAME_ERROR, "last words");
    fd_write_all(o->to, b.data, b.size);
    fd_close(&o->from);
    link_send(o->link, FRAME_END, 1, STREAM_IN, NULL, 0);
    turn(o);
    assert_int_equal(o->frames, 1);
    assert_memory_equal(o->text, "last words", 10);
    assert_int_equal(o->ends,
                     1); /* though it could still write: whoever hears nothing is not waited for */
    assert_int_equal(o->err.kind, ERR_NONE);
    link_send(o->link, FRAME_END, 1, STREAM_IN, NULL, 0);
    turn(o);
    assert_int_equal(o->ends, 1);
}

/* /dev/full takes nothing, with an error that tells of no peer's end. */
static void a_pipe_that_breaks_ends_it_with_the_reason(void **state)
{
    struct owner *o = *state;
    int           in[2];

    link_free(o->link);
    fd_close(&o->to);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    o->to = in[1];
    o->link = link_new(o->base, in[0], open("/dev/full", O_WRONLY | O_CLOEXEC), PEER_INIT, &ops, o);
    link_send(o->link, FRAME_END, 1, STREAM_IN, NULL, 0);
    turn(o);
    assert_int_equal(o->ends, 1);
    assert_int_equal(o->err.kind, ERR_UNAVAILABLE);
    assert_string_equal(o->err.msg, "the pipe broke: No space left on device");
}

static void a_closed_link_hears_and_tells_nothing(void **state)
{
    struct owner      *o = *state;
    autobuf struct buf b;
    char               byte;

    buf_init(&b, 1000);
    add(&b, FRAME_DATA, "hello");
    fd_set_nonblock(o->to, true);
    fd_write_all(o->to, b.data, b.size);
    link_close(o->link);
    assert_int_equal(read(o->from, &byte, 1), 0);
    link_send(o->link, FRAME_DATA, 7, STREAM_IN, "hello", 5);
    for (int i = 0; i < 100; i++) { /* more than its pipe holds: it never waits, nor fails */
        static const uint8_t noise[4096];
        assert_int_equal(write(o->to, noise, sizeof noise), sizeof noise);
        turn(o);
    }
    fd_close(&o->to);
    turn(o);
    assert_int_equal(o->frames, 0);
    assert_int_equal(o->ends, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(frames_come_in_pieces),
        TEST(many_frames_come_at_once),
        TEST(an_end_in_a_frame_is_an_error),
        TEST(a_broken_frame_ends_it_once),
        TEST(frames_leave_whole),
        TEST(a_peer_that_takes_nothing_is_given_up),
        TEST(a_peer_that_is_gone_ends_it),
        TEST(a_pipe_that_breaks_ends_it_with_the_reason),
        TEST(a_closed_link_hears_and_tells_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
