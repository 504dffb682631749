#include "loop/stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "loop/later.h"

enum { READ_SIZE = 1 << 17 };

struct stream {
    int                      in_fd, out_fd;
    bool                     in_always_ready;
    bool                     ended, end_told;
    bool                     hung_up;    /* what has not come yet is not waited for */
    int                      broken_sys; /* why output goes nowhere, or 0 */
    bool                     broken_told;
    struct event            *readable, *writable;
    struct later             offer;
    struct buf               in, out;
    size_t                   left; /* bytes that went out and were not told yet */
    const struct stream_ops *ops;
    void                    *owner;
};

/* Files, /dev/null and the like, which epoll refuses. */
static bool is_always_ready(int fd)
{
    autofd int         epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event none = {0};

    return fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &none) < 0 && errno == EPERM;
}

/* The kernel may have no memory for it, or the user no watches left. Whoever would never hear of
 * this stream again hears of its end. */
static void watch(struct stream *s, struct event *event)
{
    if (event_add(event, NULL) == 0)
        return;
    if (!s->broken_sys)
        s->broken_sys = errno;
    s->left += s->out.size;
    buf_drop(&s->out, s->out.size);
    s->ended = true;
    later_ask(&s->offer);
}

/* ---- in ---- */

static void want_input(struct stream *s)
{
    bool room = s->in.max - s->in.size >= READ_SIZE;

    if (s->in_fd < 0 || s->ended || !room) {
        if (s->readable)
            event_del(s->readable);
    } else if (s->in_always_ready || s->hung_up) {
        later_ask(&s->offer);
    } else {
        watch(s, s->readable);
    }
}

static void read_once(struct stream *s)
{
    uint8_t *to = buf_reserve(&s->in, READ_SIZE);
    ssize_t  n;

    if (!to || s->ended || s->in_fd < 0)
        return;
    n = read(s->in_fd, to, READ_SIZE);
    if (n > 0)
        s->in.size += (size_t)n;
    else if (n == 0 || (errno != EINTR && (errno != EAGAIN || s->hung_up)))
        s->ended = true;
}

/* ---- out ---- */

/* How many of the bytes are gone: written, or dropped because nobody will ever take them. Both
 * count as having left, or their sender would wait for credit for ever. */
static size_t write_some(struct stream *s, const uint8_t *data, size_t size)
{
    size_t gone = 0;

    while (gone < size && !s->broken_sys) {
        ssize_t n = write(s->out_fd, data + gone, size - gone);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR)
            s->broken_sys = errno;
        if (n > 0)
            gone += (size_t)n;
    }
    if (s->broken_sys)
        gone = size;
    s->left += gone;
    later_ask(&s->offer);
    return gone;
}

int stream_write(struct stream *s, const void *data, size_t size)
{
    size_t gone;

    if (!s->broken_sys && size > s->out.max - s->out.size)
        return -1;
    gone = s->out.size == 0 ? write_some(s, data, size) : 0;
    if (gone < size) {
        buf_add(&s->out, (const uint8_t *)data + gone, size - gone);
        watch(s, s->writable);
    }
    return 0;
}

size_t stream_queued(const struct stream *s)
{
    return s->out.size;
}

/* ---- telling the owner, from the top of the loop ---- */

static void tell(void *arg)
{
    struct stream *s = arg;
    size_t         left = s->left;

    s->left = 0;
    if (left > 0 && s->ops->left)
        s->ops->left(s->owner, left);
    if (s->broken_sys && !s->broken_told) {
        s->broken_told = true;
        if (s->ops->broken)
            s->ops->broken(s->owner, s->broken_sys);
    }
    if (s->in_always_ready || s->hung_up)
        read_once(s);
    if (s->in.size > 0 || (s->ended && !s->end_told)) {
        s->end_told = s->ended;
        s->ops->input(s->owner, &s->in, s->ended);
    }
    want_input(s);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;

    (void)fd;
    (void)what;
    read_once(s);
    tell(s);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct stream *s = arg;

    (void)fd;
    (void)what;
    buf_drop(&s->out, write_some(s, s->out.data, s->out.size));
    if (s->out.size > 0)
        watch(s, s->writable);
    tell(s);
}

void stream_hang_up(struct stream *s)
{
    s->hung_up = true;
    if (s->readable)
        event_del(s->readable);
    later_ask(&s->offer);
}

void stream_end_output(struct stream *s)
{
    assert(s->out_fd != s->in_fd);
    if (s->writable)
        event_del(s->writable);
    fd_close(&s->out_fd);
    s->left += s->out.size;
    buf_drop(&s->out, s->out.size);
    s->broken_sys = EPIPE;
    s->broken_told = true; /* it was asked for */
    later_ask(&s->offer);
}

void stream_offer(struct stream *s)
{
    s->end_told = false; /* the owner may not have been ready for the end either */
    later_ask(&s->offer);
}

/* ---- the whole ---- */

struct stream *stream_new(struct event_base *base, int in_fd, int out_fd, size_t in_max,
                          size_t out_max, const struct stream_ops *ops, void *owner)
{
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    *s = (struct stream){.in_fd = in_fd,
                         .out_fd = out_fd,
                         .in_always_ready = is_always_ready(in_fd),
                         .ops = ops,
                         .owner = owner};
    buf_init(&s->in, in_max + READ_SIZE);
    buf_init(&s->out, out_max);
    later_init(&s->offer, base, tell, s);
    if (in_fd >= 0 && !s->in_always_ready) {
        fd_set_nonblock(in_fd, true);
        s->readable = event_new(base, in_fd, EV_READ | EV_PERSIST, on_readable, s);
    }
    if (out_fd >= 0 && !is_always_ready(out_fd)) {
        fd_set_nonblock(out_fd, true);
        s->writable = event_new(base, out_fd, EV_WRITE, on_writable, s);
    }
    want_input(s);
    return s;
}

void stream_free(struct stream *s)
{
    if (!s)
        return;
    if (s->readable)
        event_free(s->readable);
    if (s->writable)
        event_free(s->writable);
    later_done(&s->offer);
    if (s->out_fd != s->in_fd)
        fd_close(&s->out_fd);
    fd_close(&s->in_fd);
    buf_done(&s->in);
    buf_done(&s->out);
    free(s);
}

int stream_reopen(int fd, int access_mode)
{
    char path[32];
    int  again = -1;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!is_always_ready(fd)) /* a file opened anew would begin at its start */
        again = open(path, access_mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return again >= 0 ? again : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}
