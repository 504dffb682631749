/* Theory of operation. Bytes are moved by trying: new credit and new bytes ask for a step, which
 * reads or writes at once, and only what the kernel did not give or take waits for an event. In a
 * bulk transfer the kernel nearly always has something, and then no event is ever added. */
#include "egress/carry.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "egress/dns.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "pipe/frame.h"

enum { CONNECT_MS = 10000 };

struct carry {
    struct event_base      *base;
    struct ip               addresses[DNS_ADDRESSES_MAX];
    size_t                  n, at; /* `at`: the next to be tried */
    uint16_t                port;
    int                     fd;
    struct event           *readable, *writable;
    struct deadline         deadline; /* of the attempt, then of silence */
    struct later            step;
    struct buf              out;    /* what the outside has not taken yet */
    uint32_t                credit; /* bytes that the code inside is ready to take */
    int64_t                 idle_ms;
    struct meter           *meter;
    const struct carry_ops *ops;
    void                   *owner;

    /* facts */
    bool       connected, reading, in_ended, out_ended, out_shut; /* reading: by event */
    bool       has_credit, has_bytes;                             /* since the last step */
    struct err err;
};

static void fail(struct carry *c, int sys, enum err_kind kind, const char *what)
{
    if (c->err.kind)
        return;
    err_set(&c->err, kind, "%s", sys ? strerror(sys) : what);
    c->err.sys = sys;
    later_ask(&c->step);
}

static void stop_watching(struct carry *c)
{
    if (c->readable)
        event_free(c->readable);
    if (c->writable)
        event_free(c->writable);
    c->readable = c->writable = NULL;
    c->reading = false;
}

/* The kernel may have no memory for it, or the user no watches left: then nobody would hear of this
 * connection before it has been silent for too long. */
static void watch(struct carry *c, struct event *event)
{
    if (event_add(event, NULL) < 0)
        fail(c, 0, ERR_UNAVAILABLE, "it cannot be watched");
}

/* ---- bytes ---- */

static void write_out(struct carry *c)
{
    size_t  may = meter_take(c->meter, c->out.size);
    ssize_t n = may > 0 ? send(c->fd, c->out.data, may, MSG_NOSIGNAL) : 0;

    meter_give_back(c->meter, may - (n > 0 ? (size_t)n : 0));
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail(c, errno, ERR_UNAVAILABLE, NULL);
    } else if (n > 0) {
        buf_drop(&c->out, (size_t)n);
        c->ops->sent(c->owner, (size_t)n);
    }
    if (c->out.size > 0 && may > 0)
        watch(c, c->writable);
    else if (c->out.size == 0)
        later_ask(&c->step);
}

static bool may_read(const struct carry *c)
{
    return c->connected && !c->in_ended && !c->err.kind && c->credit > 0 &&
           c->ops->has_room(c->owner);
}

/* The event stays while there is credit: adding it for each read would cost as much as the read. */
static void want_input(struct carry *c)
{
    bool wanted = may_read(c);

    if (wanted == c->reading || !c->readable)
        return;
    c->reading = wanted;
    if (wanted)
        watch(c, c->readable);
    else
        event_del(c->readable);
}

static void read_once(struct carry *c)
{
    static uint8_t bytes[FRAME_DATA_MAX]; /* one loop: nobody else is in here meanwhile */
    size_t         most = c->credit < sizeof bytes ? c->credit : sizeof bytes;
    size_t         may = meter_take(c->meter, most);
    ssize_t        n;

    if (may == 0) { /* carry_go_on comes; it is we who are silent */
        deadline_set(&c->deadline, c->idle_ms);
        c->reading = false;
        event_del(c->readable);
        return;
    }
    n = read(c->fd, bytes, may);
    meter_give_back(c->meter, may - (n > 0 ? (size_t)n : 0));
    deadline_set(&c->deadline, c->idle_ms);
    if (n > 0) {
        c->credit -= (uint32_t)n;
        c->ops->data(c->owner, bytes, (size_t)n);
    } else if (n == 0) {
        c->in_ended = true;
        c->ops->ended(c->owner);
        later_ask(&c->step);
    } else if (errno != EAGAIN && errno != EINTR) {
        fail(c, errno, ERR_UNAVAILABLE, NULL);
    }
    want_input(c);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    read_once(arg);
}

/* ---- making it ---- */

static void try_next(struct carry *c);

static void on_connected(struct carry *c)
{
    int       sys = 0, on = 1;
    socklen_t size = sizeof sys;

    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &sys, &size);
    if (sys) {
        errno = sys;
        try_next(c);
        return;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* the code inside decides */
    c->connected = true;
    deadline_set(&c->deadline, c->idle_ms);
    if (!c->ops->connected(c->owner, &c->addresses[c->at - 1])) {
        fail(c, 0, ERR_UNAVAILABLE, "it was not wanted");
        return;
    }
    write_out(c);
    want_input(c);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    struct carry *c = arg;

    (void)fd;
    (void)what;
    if (!c->connected) {
        on_connected(c);
        return;
    }
    deadline_set(&c->deadline, c->idle_ms);
    write_out(c);
}

static void make_events(struct carry *c)
{
    c->readable = event_new(c->base, c->fd, EV_READ | EV_PERSIST, on_readable, c);
    c->writable = event_new(c->base, c->fd, EV_WRITE, on_writable, c);
    if (!c->readable || !c->writable)
        abort();
}

static int begin(struct carry *c, const struct ip *address)
{
    struct sockaddr_storage to;
    socklen_t               size = ip_to_sockaddr(address, c->port, &to);

    c->fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0 || (connect(c->fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS))
        return -1;
    make_events(c);
    watch(c, c->writable);
    deadline_set(&c->deadline, CONNECT_MS);
    return 0;
}

/* errno tells why the one before did not work. */
static void try_next(struct carry *c)
{
    int sys = errno;

    while (c->at < c->n) {
        stop_watching(c);
        fd_close(&c->fd);
        if (begin(c, &c->addresses[c->at++]) == 0)
            return;
        sys = errno;
    }
    fail(c, sys, ERR_UNAVAILABLE, NULL);
}

static void on_deadline(void *owner)
{
    struct carry *c = owner;

    if (c->connected) {
        fail(c, 0, ERR_TIMEOUT, "it was silent for too long");
        return;
    }
    errno = ETIMEDOUT;
    try_next(c);
}

static void step(void *owner)
{
    struct carry *c = owner;

    if (c->has_bytes && c->connected && !c->err.kind && !event_pending(c->writable, EV_WRITE, NULL))
        write_out(c);
    if (c->has_credit && !c->reading && may_read(c))
        read_once(c);
    c->has_bytes = c->has_credit = false;
    if (!c->err.kind && c->connected && c->out_ended && c->out.size == 0 && !c->out_shut) {
        c->out_shut = true;
        shutdown(c->fd, SHUT_WR);
    }
    if (c->err.kind || (c->out_shut && c->in_ended))
        c->ops->over(c->owner, &c->err);
}

/* ---- the face ---- */

static struct carry *make(struct event_base *base, const struct carry_spec *spec,
                          const struct carry_ops *ops, void *owner)
{
    struct carry *c = calloc(1, sizeof *c);

    if (!c)
        abort();
    *c = (struct carry){.base = base,
                        .n = spec->n < DNS_ADDRESSES_MAX ? spec->n : DNS_ADDRESSES_MAX,
                        .port = spec->port,
                        .fd = -1,
                        .credit = spec->credit,
                        .idle_ms = spec->idle_ms,
                        .meter = spec->meter,
                        .ops = ops,
                        .owner = owner};
    buf_init(&c->out, WINDOW_CONNECTION);
    deadline_init(&c->deadline, base, on_deadline, c);
    later_init(&c->step, base, step, c);
    return c;
}

struct carry *carry_adopt(struct event_base *base, int fd, const struct carry_spec *spec,
                          const struct carry_ops *ops, void *owner)
{
    struct carry *c = make(base, spec, ops, owner);
    int           on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* the peers decide */
    c->fd = fd;
    c->connected = true;
    make_events(c);
    deadline_set(&c->deadline, c->idle_ms);
    want_input(c);
    return c;
}

struct carry *carry_new(struct event_base *base, const struct carry_spec *spec,
                        const struct carry_ops *ops, void *owner)
{
    struct carry *c = make(base, spec, ops, owner);

    memcpy(c->addresses, spec->addresses, c->n * sizeof *c->addresses);
    errno = EHOSTUNREACH;
    try_next(c);
    return c;
}

void carry_free(struct carry *c)
{
    if (!c)
        return;
    stop_watching(c);
    if (c->connected && !(c->out_shut && c->in_ended))
        fd_reset(&c->fd); /* the outside sees it too */
    fd_close(&c->fd);
    deadline_done(&c->deadline);
    later_done(&c->step);
    buf_done(&c->out);
    free(c);
}

int carry_write(struct carry *c, const void *bytes, size_t size)
{
    if (c->out_ended || buf_add(&c->out, bytes, size) < 0)
        return -1;
    if (c->connected && !c->err.kind) {
        deadline_set(&c->deadline, c->idle_ms);
        c->has_bytes = true;
        later_ask(&c->step);
    }
    return 0;
}

void carry_end(struct carry *c)
{
    c->out_ended = true;
    later_ask(&c->step);
}

void carry_credit(struct carry *c, uint32_t bytes)
{
    c->credit += bytes;
    c->has_credit = true;
    later_ask(&c->step);
}

bool carry_is_sending(const struct carry *c)
{
    return !c->err.kind && (!c->out_ended || c->out.size > 0);
}

void carry_go_on(struct carry *c)
{
    if (c->connected && c->out.size > 0 && !c->err.kind)
        watch(c, c->writable);
    want_input(c);
}
