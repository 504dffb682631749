/* Theory of operation. Loopback answers a connect at once, unless the listener's queue is full:
 * then the place waits for POLLOUT in the state `connecting`, in which the server may only RESET.
 * There is no deadline here: the server has one, and the kernel gives up by itself. */
#include "init/dial.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "init/connection.h"
#include "init/outbox.h"
#include "init/world.h"
#include "pipe/message.h"

static struct dial {
    struct connection connection;
    bool              connecting;
    bool              is_ipv6;
    uint16_t          port;
} dials[DIALS_MAX];

static size_t n_dials; /* up to the last place in use */

static struct dial *find_dial(uint32_t id)
{
    for (size_t i = 0; i < n_dials; i++)
        if (id != 0 && dials[i].connection.id == id)
            return &dials[i];
    return NULL;
}

static struct dial *find_place_for_dial(void)
{
    for (size_t i = 0; i < DIALS_MAX; i++)
        if (!dials[i].connection.id) {
            if (i == n_dials)
                n_dials++;
            return &dials[i];
        }
    return NULL;
}

static void forget_dials(void)
{
    while (n_dials > 0 && !dials[n_dials - 1].connection.id)
        n_dials--;
}

bool dial_has(uint32_t channel)
{
    return find_dial(channel) != NULL;
}

/* ---- making it ---- */

static void dial_refused(struct dial *d, const struct err *failure)
{
    outbox_send_error(d->connection.id, failure);
    connection_close(&d->connection);
}

/* -1: not on this address, and why. */
static int dial_try(struct dial *d, struct err *failure)
{
    uint32_t id = d->connection.id;
    int      fd = world_dial(d->port, d->is_ipv6, failure);

    TRY(fd);
    connection_close(&d->connection);
    connection_open(&d->connection, id, fd);
    d->connecting = true;
    return 0;
}

/* What answers on IPv4 is tried first; only who listens on ::1 alone is found there. */
static void dial_try_ipv6(struct dial *d, struct err *failure)
{
    struct err ignored = {0};

    if (failure->sys != ECONNREFUSED || d->is_ipv6) {
        dial_refused(d, failure);
        return;
    }
    d->is_ipv6 = true;
    if (dial_try(d, &ignored) < 0)
        dial_refused(d, failure);
}

int dial_open(const struct frame *f, struct err *e)
{
    struct message_dial m;
    struct dial        *d;
    struct err          failure = {0};

    TRY(message_unpack_dial(f, &m, e));
    d = find_place_for_dial();
    if (!d) {
        err_set(&failure, ERR_LIMIT, "there are %d connections already", DIALS_MAX);
        outbox_send_error(f->channel, &failure);
        return 0;
    }
    *d = (struct dial){.connection = {.id = f->channel, .fd = -1}, .port = m.port};
    if (dial_try(d, &failure) < 0)
        dial_try_ipv6(d, &failure);
    forget_dials();
    return 0;
}

static void dial_connected(struct dial *d)
{
    struct err failure = {0};
    int        sys = 0;
    socklen_t  size = sizeof sys;

    if (getsockopt(d->connection.fd, SOL_SOCKET, SO_ERROR, &sys, &size) < 0)
        sys = errno;
    if (sys == 0) {
        d->connecting = false;
        outbox_send(FRAME_STARTED, d->connection.id, 0, NULL, 0);
        return;
    }
    errno = sys;
    err_sys(&failure, "connect to port %u inside", d->port);
    dial_try_ipv6(d, &failure);
}

/* ---- frames and descriptors ---- */

int dial_handle(const struct frame *f, struct err *e)
{
    struct dial *d = find_dial(f->channel);
    int          r;

    if (d->connecting && f->type != FRAME_RESET)
        return err_set(e, ERR_INVALID, "%s frame on channel %u before it was started",
                       frame_type_name(f->type), f->channel);
    r = connection_handle(&d->connection, f, e);
    forget_dials();
    return r;
}

size_t dial_fill_polls(struct pollfd polls[DIALS_MAX])
{
    for (size_t i = 0; i < n_dials; i++)
        polls[i] = dials[i].connecting && dials[i].connection.id
                       ? (struct pollfd){dials[i].connection.fd, POLLOUT, 0}
                       : connection_poll(&dials[i].connection);
    return n_dials;
}

void dial_ready(const struct pollfd *polls)
{
    size_t n = n_dials;

    for (size_t i = 0; i < n; i++) {
        struct dial *d = &dials[i];
        if (!d->connection.id || !polls[i].revents)
            continue;
        if (d->connecting)
            dial_connected(d);
        else
            connection_ready(&d->connection, polls[i].revents);
    }
    forget_dials();
}
