/* connection_private - what connection.c (one connection, from request to request) and
 * connections.c (all of them, and the bounds over them) know of each other. */
#pragma once

#include <event2/event_struct.h>

#include "base/buf.h"
#include "transport/connections.h"

enum { CONNECTION_READ = 64 << 10 }; /* at once, at most */

struct connection {
    LIST_ENTRY(connection) entry;
    SLIST_ENTRY(connection) work_entry;
    struct connections *all;
    int                 fd;
    enum { READ_HEAD, READ_BODY, ANSWERING, LINGERING, DEAD } state;
    bool                    works;   /* is in the list of work */
    bool                    gathers; /* what was read is being answered */
    bool                    closes;
    bool                    shut; /* our end was said */
    bool                    deaf; /* nothing is read for now */
    struct event            readable, writable;
    struct buf              in, out;
    size_t                  in_from, out_from;       /* what lies before was taken */
    size_t                  in_counted, out_counted; /* in the sums of all */
    struct http_scan        scan;
    const struct http_head *head; /* of the request at hand */
    size_t                  head_size;
    struct pending         *pending;
    struct http_chunks      chunks;
    size_t                  body_at, body_size;
    void                   *note;
    /* When its time is over, 0: never. One for a client that does nothing, or does not read; one
     * for the request that is coming, which nothing but its last byte ends. */
    int64_t due_ms, request_due_ms;
    int64_t waits_since_ms; /* some of what we wrote, without a pause … */
    size_t  largest;        /* … and of these the largest piece */
    size_t  lingered;
    void (*gone)(void *arg);
    void *gone_arg;
};

/* What its client has not read yet, as far as we know. */
static inline size_t connection_unread(const struct connection *c)
{
    return c->out.size - c->out_from;
}

/* ---- connection.c ---- */

struct connection *connection_new(struct connections *all, int fd_take);
void               connection_free(struct connection *c);
void               connection_die(struct connection *c); /* the sweep frees it */
/* The same, and what waits for its client goes now: the next one to be answered needs the room. */
void connection_cut_off(struct connection *c);
/* The request that is coming is answered so; then it is closed. */
void connection_turn_away(struct connection *c, int status, const char *why);
void connection_take_requests(struct connection *c);      /* of what was read, as far as they go */
bool connection_is_receiving(const struct connection *c); /* some of a request, and not all */

/* ---- connections.c ---- */

void connections_ask_sweep(struct connection *c); /* to free it if it is dead, else to go on */
void connections_bound_input(struct connection *c);
void connections_bound_output(struct connections *all);
bool connections_can_wait(const struct connection *c); /* what its client sends now */
