/* reply - the answer to one HTTP request: a body at once, or a stream of events.
 *
 * Contract. Exactly one of reply_send and reply_stream; then the caller forgets the reply. What is
 * told about a client that left is told from the top of the loop. A client that does not read is
 * cut off when too much waits for it. */
#pragma once

#include <stddef.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "transport/connection.h"
#include "transport/sse.h"

struct reply;

/* All streams of a server. */
struct replies {
    LIST_HEAD(reply_list, reply) streams;
    struct buf scratch; /* what is being said */
    int64_t    date_s;  /* of date */
    char       date[40];
};

void replies_init(struct replies *all);
void replies_done(struct replies *all);      /* after connections_done; nobody is told */
void replies_heartbeat(struct replies *all); /* a comment on every open stream */

struct reply *reply_new(struct replies *all, struct connection *c);
const char   *reply_request_header(const struct reply *r,
                                   const char         *name); /* or NULL; before it streams */
void          reply_header(struct reply *r, const char *name, const char *value);

void reply_send(struct reply *r, int status, const char *type,
                const char *body); /* body: or NULL */
void reply_free(struct reply *r);  /* nothing was said: another will */
/* The stream's events go to the client from now on. When it leaves, they are detached, and `lost`
 * (or NULL) is called. The stream's end ends the reply. */
void reply_stream(struct reply *r, struct sse *events, void (*lost)(void *owner), void *owner);
