/* http_session - legacy sessions on HTTP: found by Mcp-Session-Id, each with the event
 * streams that outlive their connections.
 *
 * Stream 0 is for what belongs to no request (GET); each request that does not end at once has one
 * of its own. A stream is forgotten five minutes after its end, or when too many later ones have
 * ended, or streams hold too many bytes (of its session, of all). What has not ended is never
 * forgotten; but one that grows past these sums, with nothing ended left to forget, keeps its
 * newest event alone. A session is forgotten after an hour in which nobody asked for it and nothing
 * of it ran. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "mcp/exchange.h"
#include "transport/principal.h"
#include "transport/sse.h"

enum {
    HTTP_SESSIONS_MAX = 10000,
    HTTP_SESSION_REQUESTS_MAX = 256,
    HTTP_SESSION_KEPT_MAX = 4 << 20,    /* bytes of its streams, besides the last that ended */
    HTTP_SESSIONS_KEPT_MAX = 256 << 20, /* of all sessions */
};

struct http_stream {
    struct http_stream  *next; /* newest first */
    struct http_session *session;
    struct sse           sse;
    size_t               counted;                /* of its bytes, in the sums */
    int64_t              ended_ms;               /* 0: not yet */
    struct http_stream  *ended_next, **ended_at; /* of all that have ended, oldest first */
};

struct http_session {
    struct http_session  *next; /* in its bucket */
    struct http_sessions *all;
    char                  id[33];
    struct principal     *principal;
    struct mcp_session   *mcp;
    struct http_stream   *streams;
    unsigned              last_stream;
    size_t                open;    /* requests */
    size_t                kept;    /* bytes of its streams */
    int64_t               used_ms; /* when it was last asked for */
};

enum { HTTP_SESSION_BUCKETS = 1024 };

struct http_sessions {
    struct mcp_server   *server;
    struct http_session *buckets[HTTP_SESSION_BUCKETS];
    size_t               n;
    struct http_stream  *ended, **ended_last; /* oldest first */
    size_t               kept;                /* bytes of all streams */
};

void http_sessions_init(struct http_sessions *all, struct mcp_server *server);
/* NULL: there are too many. */
struct http_session *http_session_new(struct http_sessions *all, struct principal *principal);
/* NULL: unknown, or another's. */
struct http_session *http_session_find(struct http_sessions *all, const char *id,
                                       const struct principal *principal);
/* Cancels its requests, ends its streams. */
void http_session_free(struct http_sessions *all, struct http_session *s);

void http_sessions_expire(struct http_sessions *all);
void http_sessions_end_gets(struct http_sessions *all); /* their streams; requests go on */
void http_sessions_done(struct http_sessions *all);     /* frees them all */

/* An empty first event, if its revision knows that: so the client has an id to come back with. */
void http_session_prime(const struct http_session *s, struct sse *events);

struct http_stream *http_session_stream(struct http_session *s); /* a new one, for a request */
struct http_stream *http_session_find_stream(struct http_session *s, unsigned number);
struct http_stream      *
http_session_standalone(struct http_session *s);           /* number 0; made when missing */
void http_stream_send(struct http_stream *t, const char *json); /* one line */
void http_stream_end(struct http_stream *t);
