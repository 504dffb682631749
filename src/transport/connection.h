/* connection - the connections of an HTTP/1.1 server: bytes in, requests out, answers back.
 *
 * Nobody can make it hold much: a request is looked at when its head is there (`head`), before any
 * of its body is kept; head, body, unread answers, their sums over all connections, the number of
 * connections and the time from a request's first byte to its last are bounded. What passes a bound
 * is refused or cut off, and counted.
 *
 * Contract. After `head` has let a request pass, `request` is called once with its body. Each
 * request that reached either gets exactly one answer: connection_write as often as needed, then
 * connection_answered; the next request is taken after that. Nothing is freed inside these calls; a
 * client that leaves before its answer is complete is told of by `gone`, from the top of the loop.
 */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "loop/later.h"
#include "transport/http_head.h"

enum {
    CONNECTIONS_MAX = 16384,            /* and at most three quarters of the descriptors */
    CONNECTION_BODY_MAX = 8 << 20,      /* of one request */
    CONNECTION_REQUEST_MS = 60000,      /* from its first byte to its last */
    CONNECTIONS_INPUT_MAX = 256 << 20,  /* of all that is read and not yet answered */
    CONNECTIONS_OUTPUT_MAX = 256 << 20, /* of all that waits for clients to read it */
};

struct connection;

struct connection_ops {
    /* True: the body may come. False: it was refused, and answered. */
    bool (*head)(void *owner, struct connection *c);
    void (*request)(void *owner, struct connection *c);
    /* This is no request, or one too large or too late: answer it so. */
    void (*refuse)(void *owner, struct connection *c, int status, const char *why);
    void (*quiet)(void *owner); /* one connection less waits for something; it only records */
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

/* Of the request at hand, inside the ops only. */
const struct http_head       *
connection_head(const struct connection *c); /* NULL: it could not be read */
char *connection_body(const struct connection *c, size_t *ret_size);

/* What `head` found out, for `request`. */
void  connection_set_note(struct connection *c, void *note);
void *connection_note(const struct connection *c);

bool connection_closes(const struct connection *c); /* after this answer */
void connection_set_closes(struct connection *c);

void connection_write(struct connection *c, const void *data, size_t size);
void connection_answered(struct connection *c);
/* The answer takes its time: whom to tell when the client leaves. */
void connection_watch(struct connection *c, void (*gone)(void *arg), void *arg);
