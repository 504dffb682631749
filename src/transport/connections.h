/* connections - those of an HTTP/1.1 server, and the bounds over all of them.
 *
 * Nobody can make it hold much: how many there are, the bytes of requests that come and of answers
 * that nobody reads, and the time of each are bounded. What passes a bound is refused or cut off,
 * and counted. */
#pragma once

#include <event2/event.h>
#include <sys/queue.h>

#include "loop/later.h"
#include "transport/connection.h"

enum {
    CONNECTIONS_MAX = 16384,            /* and at most three quarters of the descriptors */
    CONNECTIONS_INPUT_MAX = 256 << 20,  /* of all that is read and not yet answered */
    CONNECTIONS_OUTPUT_MAX = 256 << 20, /* of all that waits for clients to read it */
};

struct connection_counts { /* what was refused or cut off, since the start */
    size_t crowded;        /* connections over the maximum */
    size_t heavy;          /* over the bytes of all */
    size_t slow;           /* over the time of a request */
};

struct connections {
    struct event_base *base;
    LIST_HEAD(connection_list, connection) open;
    SLIST_HEAD(connection_work, connection) work; /* to be freed, or to go on */
    size_t                       n, max;
    size_t                       input, output; /* bytes held */
    size_t                       input_max, output_max;
    int64_t                      request_ms;
    struct connection_counts     counts;
    struct later                 sweep;
    struct http_head             head; /* of the request at hand */
    char                        *read; /* what was just read */
    const struct connection_ops *ops;
    void                        *owner;
};

void connections_init(struct connections *all, struct event_base *base, int64_t request_ms,
                      const struct connection_ops *ops, void *owner);
void connections_done(struct connections *all); /* closes them; nobody is told */
void connections_add(struct connections *all, int fd_take);
void connections_tick(struct connections *all); /* once a second: whose time is over? */
/* With answers to come, or with clients that have not read theirs. */
bool connections_are_busy(const struct connections *all);
