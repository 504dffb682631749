/* Theory of operation. A connection has two directions that end apart. Inwards: DATA of the server
 * is written to the socket at once, and what the socket does not take waits in `in`; END shuts the
 * socket's writing side when `in` is empty. Outwards: what is read becomes DATA, as far as credit
 * goes; the end of reading becomes END. Both ended: the channel is closed. RESET, either way, ends
 * both: the socket is closed with a TCP reset, whatever waits. */
#include "init/connection.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/outbox.h"
#include "pipe/message.h"

void connection_open(struct connection *c, uint32_t id, int fd)
{
    *c = (struct connection){.id = id, .fd = fd, .credit = WINDOW_CONNECTION};
    buf_init(&c->in, WINDOW_CONNECTION);
}

void connection_close(struct connection *c)
{
    fd_close(&c->fd);
    buf_done(&c->in);
    c->id = 0;
}

static void connection_reset(struct connection *c)
{
    fd_reset(&c->fd);
    connection_close(c);
}

static void connection_fail(struct connection *c)
{
    outbox_send(FRAME_RESET, c->id, 0, NULL, 0);
    connection_reset(c);
}

/* Writes what it can; -1: the connection is over. */
static long connection_write(struct connection *c, const uint8_t *data, size_t size)
{
    ssize_t n = write(c->fd, data, size);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0) {
        connection_fail(c);
        return -1;
    }
    c->owed += (uint32_t)n;
    if (c->owed >= CONNECTION_CREDIT_STEP) {
        outbox_send_credit(c->id, STREAM_IN, c->owed);
        c->owed = 0;
    }
    return n;
}

/* What both ends wait for when `in` has become empty. */
static void connection_drained(struct connection *c)
{
    buf_done(&c->in);
    buf_init(&c->in, WINDOW_CONNECTION);
    if (c->in_ended && !c->in_shut) {
        shutdown(c->fd, SHUT_WR);
        c->in_shut = true;
    }
    if (c->in_shut && c->out_ended)
        connection_close(c);
}

static void connection_feed(struct connection *c)
{
    long n = connection_write(c, c->in.data, c->in.size);

    if (n < 0)
        return;
    buf_drop(&c->in, (size_t)n);
    if (c->in.size == 0)
        connection_drained(c);
}

static void connection_relay(struct connection *c)
{
    long n = outbox_relay(c->fd, c->id, STREAM_OUT, c->credit);

    if (n > 0) {
        c->credit -= (uint32_t)n;
    } else if (n == 0) {
        c->out_ended = true;
        outbox_send(FRAME_END, c->id, STREAM_OUT, NULL, 0);
        if (c->in_shut)
            connection_close(c);
    } else if (errno != EAGAIN && errno != EINTR) {
        connection_fail(c);
    }
}

/* ---- frames ---- */

static int connection_take_data(struct connection *c, const struct frame *f, struct err *e)
{
    size_t held = c->in.size + c->owed;
    long   n = 0;

    if (c->in_ended || f->stream != STREAM_IN || f->size > WINDOW_CONNECTION - held)
        return err_set(e, ERR_INVALID, "data past the end or the window of channel %u", c->id);
    if (c->in.size == 0)
        n = connection_write(c, f->payload, f->size);
    if (n >= 0)
        buf_add(&c->in, f->payload + n, f->size - (size_t)n); /* fits: see above */
    return 0;
}

static int connection_take_end(struct connection *c, const struct frame *f, struct err *e)
{
    if (c->in_ended || f->stream != STREAM_IN)
        return err_set(e, ERR_INVALID, "a second or misplaced end on channel %u", c->id);
    c->in_ended = true;
    if (c->in.size == 0)
        connection_drained(c);
    return 0;
}

static int connection_take_credit(struct connection *c, const struct frame *f, struct err *e)
{
    uint32_t bytes;

    TRY(message_unpack_u32(f, &bytes, e));
    if (f->stream != STREAM_OUT || bytes > WINDOW_CONNECTION - c->credit)
        return err_set(e, ERR_INVALID, "credit past the window of channel %u", c->id);
    c->credit += bytes;
    return 0;
}

int connection_handle(struct connection *c, const struct frame *f, struct err *e)
{
    switch (f->type) {
    case FRAME_DATA:
        return connection_take_data(c, f, e);
    case FRAME_END:
        return connection_take_end(c, f, e);
    case FRAME_CREDIT:
        return connection_take_credit(c, f, e);
    case FRAME_RESET:
        connection_reset(c);
        return 0;
    default:
        return err_set(e, ERR_INVALID, "%s frame on channel %u, which is a connection",
                       frame_type_name(f->type), c->id);
    }
}

/* ---- descriptors ---- */

struct pollfd connection_poll(const struct connection *c)
{
    struct pollfd p = {c->fd, 0, 0};

    if (!c->id)
        return (struct pollfd){-1, 0, 0};
    if (c->in.size > 0)
        p.events |= POLLOUT;
    if (!c->out_ended && c->credit > 0)
        p.events |= POLLIN;
    if (c->in_shut && c->credit == 0)
        p.fd = -1; /* POLLHUP would not let poll sleep: both sides may be shut, and bytes wait */
    return p;
}

void connection_ready(struct connection *c, short events)
{
    uint32_t id = c->id;

    if (events & POLLOUT)
        connection_feed(c);
    if (c->id == id && events & POLLIN)
        connection_relay(c);
    if (c->id == id && events && !(events & (POLLIN | POLLOUT)))
        connection_fail(c); /* reset by the code */
}
