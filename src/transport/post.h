/* post - one POST: a message goes in, its answer comes out as a body or as an event stream.
 *
 * What ends at once is answered with JSON and the status the protocol gave. Anything else becomes a
 * stream: a modern one belongs to the connection, and losing that cancels the request; a legacy one
 * belongs to the session, and the request goes on without its connection. */
#pragma once

#include <stddef.h>
#include <sys/queue.h>

#include "mcp/exchange.h"
#include "transport/http_session.h"
#include "transport/reply.h"

struct post;

struct posts {
    struct mcp_server    *server;
    struct http_sessions *sessions;
    LIST_HEAD(post_list, post) open;
    void (*emptied)(void *owner); /* the last one ended; it only records */
    void *owner;
};

/* `session`: a legacy one (also a fresh one, for initialize, which is freed again if that fails),
 * or NULL. `size`: what the message was as text. Takes the reply. */
void post_start(struct posts *all, struct reply *reply, json_t *message, size_t size,
                struct http_session *session, struct principal *principal);

/* Cancels them; their streams end properly. Those of sessions end with their session. */
void posts_cancel(struct posts *all);
