/* Theory of operation. A connection has two directions that end apart. Inwards: DATA of the server
 * is written to the socket at once, and what the socket does not take waits in `in`; END shuts the
 * socket's writing side when `in` is empty. Outwards: what is read becomes DATA, as far as credit
 * goes; the end of reading becomes END. Both ended: the channel is closed. RESET, either way, ends
 * both: the socket is closed with a TCP reset, whatever waits.
 *
 * Memory: a connection holds at most its window, and only while its reader is slow. All of them at
 * once: EGRESS_CONNECTIONS_MAX x WINDOW_CONNECTION, 80 MiB. */
#include "init/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/outbox.h"
#include "init/world.h"
#include "pipe/message.h"

enum {
    CREDIT_STEP = WINDOW_CONNECTION / 2, /* less is not worth a frame */
    AT_A_TIME = 32,                      /* of one door, so that nobody else waits for long */
    QUERY_MIN = 12,
    QUERY_MAX = 4096,
};

struct connection {
    uint32_t   id; /* 0: the place is free */
    int        fd;
    struct buf in;       /* what the code has not taken yet */
    uint32_t   owed;     /* bytes the code took for which the server has no credit yet */
    uint32_t   credit;   /* bytes the server is ready to take */
    bool       in_ended; /* END came */
    bool       in_shut;  /* and was passed on */
    bool       out_ended;
};

struct lookup {
    uint32_t id;
    int      door_fd;
    union {
        struct sockaddr     any;
        struct sockaddr_in  v4;
        struct sockaddr_in6 v6;
    } who;
    socklen_t who_size;
};

static struct connection connections[EGRESS_CONNECTIONS_MAX];
static size_t            n_places; /* up to the last one in use */
static size_t            most;     /* connections; fewer than there are places when fds are few */
static struct lookup     lookups[EGRESS_LOOKUPS_MAX];
static size_t            n_lookups; /* ever */
static uint32_t          last_number;
static struct doors      doors;
static bool              is_open;
static int               spare_fd; /* given up for a moment to refuse somebody */

/* 0 when all are used up: none is ever given twice. */
static uint32_t next_number(void)
{
    return last_number < ~CHANNEL_OF_INIT ? CHANNEL_OF_INIT | ++last_number : 0;
}

/* ---- connections ---- */

static struct connection *find_connection(uint32_t id)
{
    for (size_t i = 0; i < n_places; i++)
        if (connections[i].id == id)
            return &connections[i];
    return NULL;
}

static struct connection *find_place(void)
{
    for (size_t i = 0; i < most; i++)
        if (!connections[i].id) {
            if (i == n_places)
                n_places++;
            return &connections[i];
        }
    return NULL;
}

static void close_connection(struct connection *c)
{
    fd_close(&c->fd);
    buf_done(&c->in);
    c->id = 0;
    while (n_places > 0 && !connections[n_places - 1].id)
        n_places--;
}

static void send_tcp_reset(int *fd)
{
    setsockopt(*fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    fd_close(fd);
}

static void connection_fail(struct connection *c)
{
    outbox_send(FRAME_RESET, c->id, 0, NULL, 0);
    send_tcp_reset(&c->fd);
    close_connection(c);
}

static void connection_open(int fd)
{
    struct message_connect m;
    struct connection     *c = NULL;
    autobuf struct buf     b;
    uint32_t               id = 0;

    buf_init(&b, 32);
    if (world_find_destination(fd, &m) == 0)
        c = find_place();
    if (c)
        id = next_number();
    if (!id || message_pack_connect(&b, &m) < 0) {
        send_tcp_reset(&fd);
        return;
    }
    *c = (struct connection){.id = id, .fd = fd, .credit = WINDOW_CONNECTION};
    buf_init(&c->in, WINDOW_CONNECTION);
    outbox_send(FRAME_CONNECT, id, 0, b.data, b.size);
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
    if (c->owed >= CREDIT_STEP) {
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
        close_connection(c);
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
            close_connection(c);
    } else if (errno != EAGAIN && errno != EINTR) {
        connection_fail(c);
    }
}

/* ---- lookups ---- */

static void lookup_hear(int door_fd)
{
    uint8_t query[QUERY_MAX + 1];

    for (int i = 0; i < AT_A_TIME; i++) {
        struct lookup l = {.door_fd = door_fd, .who_size = sizeof l.who};
        ssize_t       n = recvfrom(door_fd, query, sizeof query, 0, &l.who.any, &l.who_size);

        if (n < 0)
            return;
        if (n < QUERY_MIN || n > QUERY_MAX || !(l.id = next_number()))
            continue; /* no query; who asks will be tired of waiting */
        lookups[n_lookups++ % EGRESS_LOOKUPS_MAX] = l;
        outbox_send(FRAME_LOOKUP, l.id, 0, query, (size_t)n);
    }
}

static void lookup_answer(const struct frame *f)
{
    for (size_t i = 0; i < EGRESS_LOOKUPS_MAX; i++) {
        struct lookup *l = &lookups[i];
        if (l->id != f->channel)
            continue;
        /* best effort, as datagrams are */
        sendto(l->door_fd, f->payload, f->size, 0, &l->who.any, l->who_size);
        l->id = 0;
        return;
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

static void connection_reset(struct connection *c)
{
    send_tcp_reset(&c->fd);
    close_connection(c);
}

int egress_handle(const struct frame *f, struct err *e)
{
    struct connection *c = find_connection(f->channel);

    switch (f->type) {
    case FRAME_DATA:
        return c ? connection_take_data(c, f, e) : 0;
    case FRAME_END:
        return c ? connection_take_end(c, f, e) : 0;
    case FRAME_CREDIT:
        return c ? connection_take_credit(c, f, e) : 0;
    case FRAME_RESET:
        if (c)
            connection_reset(c);
        return 0;
    case FRAME_FOUND:
        lookup_answer(f);
        return 0;
    default:
        return err_set(e, ERR_INVALID, "%s frame on channel %u, which is init's",
                       frame_type_name(f->type), f->channel);
    }
}

/* ---- descriptors: four doors, then one entry a place. Nothing opens or closes a connection
 * between the two functions; the second one lets new ones in when it has gone through all. ---- */

int egress_open(struct err *e)
{
    struct rlimit fds;

    TRY(world_open_doors(&doors, e));
    if (getrlimit(RLIMIT_NOFILE, &fds) < 0)
        return err_sys(e, "getrlimit");
    most = fds.rlim_cur / 2; /* the other half is for processes and files */
    if (most > EGRESS_CONNECTIONS_MAX)
        most = EGRESS_CONNECTIONS_MAX;
    spare_fd = fcntl(doors.connections[0], F_DUPFD_CLOEXEC, 0);
    if (spare_fd < 0)
        return err_sys(e, "a spare descriptor");
    is_open = true;
    return 0;
}

/* No descriptor is left: whoever waits must be refused all the same, or poll would never rest. */
static void refuse_one(int door_fd)
{
    int fd;

    fd_close(&spare_fd);
    fd = accept4(door_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        send_tcp_reset(&fd);
    spare_fd = fcntl(door_fd, F_DUPFD_CLOEXEC, 0);
}

static void let_in(int door_fd)
{
    for (int i = 0; i < AT_A_TIME; i++) {
        int fd = accept4(door_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            connection_open(fd);
        else if (errno == EMFILE || errno == ENFILE)
            refuse_one(door_fd);
        else if (errno == EAGAIN)
            return;
    }
}

static struct pollfd poll_of(const struct connection *c)
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

size_t egress_fill_polls(struct pollfd polls[EGRESS_POLLS_MAX])
{
    size_t n = 0;

    if (!is_open)
        return 0;
    for (int i = 0; i < 2; i++) {
        polls[n++] = (struct pollfd){doors.connections[i], POLLIN, 0};
        polls[n++] = (struct pollfd){doors.lookups[i], POLLIN, 0};
    }
    for (size_t i = 0; i < n_places; i++)
        polls[n++] = poll_of(&connections[i]);
    return n;
}

static void connection_ready(struct connection *c, short events)
{
    uint32_t id = c->id;

    if (events & POLLOUT)
        connection_feed(c);
    if (c->id == id && events & POLLIN)
        connection_relay(c);
    if (c->id == id && events && !(events & (POLLIN | POLLOUT)))
        connection_fail(c); /* reset by the code */
}

void egress_ready(const struct pollfd *polls)
{
    size_t n = n_places;

    if (!is_open)
        return;
    for (size_t i = 0; i < n; i++)
        if (connections[i].id)
            connection_ready(&connections[i], polls[4 + i].revents);
    for (size_t i = 0; i < 2; i++) {
        if (polls[2 * i].revents)
            let_in(doors.connections[i]);
        if (polls[2 * i + 1].revents)
            lookup_hear(doors.lookups[i]);
    }
}
