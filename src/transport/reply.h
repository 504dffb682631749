/* reply - the answer to one HTTP request on evhttp: a body at once, or a stream of events.
 *
 * Contract. Exactly one of reply_send and reply_stream, before the request's callback returns (else
 * libevent does not notice a client that leaves); then the caller forgets the reply. What is told
 * about a client that left is told from the top of the loop. A client that does not read is cut off
 * when too much waits for it. */
#pragma once

#include <event2/event.h>
#include <event2/http.h>
#include <stddef.h>

#include "loop/later.h"
#include "transport/sse.h"

struct reply;

/* All replies of a server. */
struct replies {
    struct reply    *open;
    struct reply    *over; /* to be freed from the top of the loop */
    size_t           n;    /* of both */
    struct later     sweep;
    struct evbuffer *scratch;
    void (*emptied)(void *owner); /* the last one is gone; from the top of the loop */
    void *owner;
};

enum { REPLY_IDLE_S = 60 }; /* a half request, a kept-alive connection, a client not reading */

void replies_init(struct replies *all, struct event_base *base, void (*emptied)(void *owner),
                  void *owner);
void replies_done(struct replies *all);      /* after evhttp_free; nobody is told */
void replies_heartbeat(struct replies *all); /* a comment on every open stream */

/* For evhttp_set_bevcb: a connection whose input is bounded. */
struct bufferevent *reply_bufferevent(struct event_base *base, void *arg);

struct reply *reply_new(struct replies *all, struct evhttp_request *req);
const char   *reply_request_header(const struct reply *r,
                                   const char         *name); /* or NULL; before it streams */
void          reply_header(struct reply *r, const char *name, const char *value);

void reply_send(struct reply *r, int status, const char *type,
                const char *body); /* body: or NULL */
/* The stream's events go to the client from now on. When it leaves, they are detached, and `lost`
 * (or NULL) is called. The stream's end ends the reply. */
void reply_stream(struct reply *r, struct sse *events, void (*lost)(void *owner), void *owner);
