/* exchange - the boundary to transports: one message in, answers out.
 *
 * A transport parses nothing but JSON. For each message it makes an exchange: where the message
 * came from (who, which session, which headers) and where its answers go. The library calls `send`
 * for notifications and server→client requests that belong to it, and `finish` exactly once: with
 * the response, or with NULL when none is due (a notification, a cancelled request). The HTTP
 * status is part of it, since the rules of the protocol decide it. Everything synchronous
 * (validation, lists) finishes before mcp_exchange_start returns; what is still open then runs. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "mcp/server.h"

struct mcp_session; /* legacy state: one a process on stdio, one an Mcp-Session-Id on HTTP */

struct mcp_exchange_ops {
    void (*send)(void *owner, json_t *message); /* borrowed; must not abandon the exchange */
    void (*finish)(void *owner, int status, json_t *message); /* borrowed, or NULL; the last call */
    void (*drop_connection)(void *owner);                     /* HTTP legacy only; may be NULL */
    /* The value without blanks around it, or NULL. NULL ops member: no headers (stdio, batches). */
    const char *(*header)(void *owner, const char *name);
};

struct mcp_exchange;

struct mcp_origin {
    struct mcp_server  *server;
    struct mcp_session *session;   /* what stdio always has, or Mcp-Session-Id names, or NULL */
    const char         *principal; /* of the token, "" */
    bool                on_http;   /* also in a batch, which has no headers */
};

/* NULL when it finished at once. */
struct mcp_exchange *mcp_exchange_start(const struct mcp_origin *from, json_t *message,
                                        const struct mcp_exchange_ops *ops, void *owner);
/* The peer is gone: no op is called any more. Modern: the request is cancelled. Legacy HTTP keeps
 * working (the transport buffers), so it does not call this. */
void mcp_exchange_abandon(struct mcp_exchange *x);

/* ---- sessions ---- */

struct mcp_session_ops {
    void (*send)(void   *owner,
                 json_t *message); /* what belongs to no request: list_changed, updated */
};

struct mcp_session *mcp_session_new(struct mcp_server *s, const char *principal,
                                    const struct mcp_session_ops *ops, void *owner);
void                mcp_session_free(struct mcp_session *s); /* cancels its requests */
bool                mcp_session_is_initialized(const struct mcp_session *s);
const char         *mcp_session_version(const struct mcp_session *s);

/* Whether a message is of the modern era: its _meta names a version, or the version header is no
 * legacy date. */
bool mcp_is_modern(const json_t *message, const char *version_header);
