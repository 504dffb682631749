/* http - Streamable HTTP: one endpoint /mcp, legacy and modern, and /healthz.
 *
 * Who may ask is decided before anything of the body is read: the name it was asked by (Host,
 * Origin), then the token. Legacy sessions live here, with streams that survive their
 * connection; a modern request is cancelled with its connection. Answers that are there at once
 * are plain JSON, all others are event streams.
 *
 * At start the soft limit of open descriptors is raised to the hard one. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "mcp/server.h"

struct connection_counts; /* transport/connections.h */
struct http_server;

struct http_options {
    const char        *address;     /* "[HOST:]PORT" or "unix:PATH"; port 0 is any free one */
    const char        *tokens_file; /* lines "NAME TOKEN"; NULL: whoever reaches us may ask */
    bool               insecure;    /* a non-loopback address may go without tokens */
    const char *const *hosts;       /* further names for Host and Origin, ended by NULL; or NULL */
    int64_t            request_ms;  /* from a request's first byte to its last; 0: a minute */
};

/* NULL on error. Strings of the options are borrowed for the call only. */
struct http_server *http_start(struct mcp_server *s, struct event_base *base,
                               const struct http_options *o, struct err *e);

/* "http://127.0.0.1:PORT/mcp", or "unix:PATH". */
const char *http_url(const struct http_server *h);

/* What was refused or cut off for the sake of others, since the start. */
const struct connection_counts *http_counts(const struct http_server *h);

/* No new connections; new requests are answered 503; listen streams are ended; the other requests
 * finish, or are cancelled after deadline_ms. Then `stopped`, once, from the top of the loop;
 * http_free is still due, and may be called inside it. A second call changes nothing. */
void http_stop(struct http_server *h, int64_t deadline_ms, void (*stopped)(void *owner),
               void *owner);
/* Without a stop, too: clients lose their connections. Before mcp_server_free; not inside a handler
 * of the server (a tool, a resource, a prompt), whose request it would free. */
void http_free(struct http_server *h);
