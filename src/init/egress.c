/* Memory: EGRESS_CONNECTIONS_MAX windows, 80 MiB, while all their readers are slow. */
#include "init/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/connection.h"
#include "init/outbox.h"
#include "init/world.h"
#include "pipe/message.h"

enum {
    AT_A_TIME = 32, /* of one door, so that nobody else waits for long */
    QUERY_MIN = 12,
    QUERY_MAX = 4096,
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

/* A place at the end that became free is not looked at any more. */
static void forget_places(void)
{
    while (n_places > 0 && !connections[n_places - 1].id)
        n_places--;
}

static void carry_out(int fd)
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
        fd_reset(&fd);
        return;
    }
    connection_open(c, id, fd);
    outbox_send(FRAME_CONNECT, id, 0, b.data, b.size);
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

int egress_handle(const struct frame *f, struct err *e)
{
    struct connection *c = find_connection(f->channel);
    int                r = 0;

    switch (f->type) {
    case FRAME_DATA:
    case FRAME_END:
    case FRAME_CREDIT:
    case FRAME_RESET:
        if (c)
            r = connection_handle(c, f, e);
        forget_places();
        return r;
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
        fd_reset(&fd);
    spare_fd = fcntl(door_fd, F_DUPFD_CLOEXEC, 0);
}

static void let_in(int door_fd)
{
    for (int i = 0; i < AT_A_TIME; i++) {
        int fd = accept4(door_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            carry_out(fd);
        else if (errno == EMFILE || errno == ENFILE)
            refuse_one(door_fd);
        else if (errno == EAGAIN)
            return;
    }
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
        polls[n++] = connection_poll(&connections[i]);
    return n;
}

void egress_ready(const struct pollfd *polls)
{
    size_t n = n_places;

    if (!is_open)
        return;
    for (size_t i = 0; i < n; i++)
        if (connections[i].id)
            connection_ready(&connections[i], polls[4 + i].revents);
    forget_places();
    for (size_t i = 0; i < 2; i++) {
        if (polls[2 * i].revents)
            let_in(doors.connections[i]);
        if (polls[2 * i + 1].revents)
            lookup_hear(doors.lookups[i]);
    }
}
