/* request - one client request while it is worked on: the inside of struct mcp_exchange.
 *
 * Methods (tools.c, resources.c, …) read what was asked and end it with request_respond or
 * request_error; who takes longer keeps the pointer and sets `cancel`, which is called when the
 * client cancels or leaves. After any of the three the request is gone. */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "base/json.h"
#include "mcp/exchange.h"
#include "mcp/revision.h"
#include "mcp/rpc.h"
#include "mcp/server.h"

LIST_HEAD(requests, mcp_exchange);

struct mcp_exchange {
    LIST_ENTRY(mcp_exchange) entry; /* among the open ones of its peer, or of nobody */
    struct mcp_server             *server;
    struct mcp_session            *session; /* NULL in the modern era */
    const struct mcp_revision     *revision;
    char                          *principal;
    json_t                        *message; /* keeps rpc's parts alive */
    struct rpc                     rpc;
    const struct mcp_method       *method;
    const json_t                  *capabilities;   /* the client's; an object */
    const json_t                  *progress_token; /* or NULL */
    double                         progress;       /* the last one sent */
    bool                           on_http;
    int                            log_level; /* index into mcp_log_levels; -1: no logs */
    int64_t                        ttl_ms;    /* of a cacheable result */
    bool                           cache_for_all;
    const struct mcp_exchange_ops *ops;
    void                          *owner;
    void (*cancel)(void *data); /* the method's, or NULL */
    void *cancel_data;
    bool *gone; /* set when it ends while mcp_exchange_start is still on the stack */
};

extern const char *const mcp_log_levels[];                /* debug first, ended by NULL */
int                      mcp_log_level(const char *name); /* -1: unknown */

void request_send(struct mcp_exchange *x, json_t *message_take);
void request_respond(struct mcp_exchange *x, json_t *result_take);
void request_error(struct mcp_exchange *x, int code, const char *message, json_t *data_take);
void request_error_status(struct mcp_exchange *x, int status, int code, const char *message,
                          json_t *data_take);

bool  request_is_modern(const struct mcp_exchange *x);
bool  request_is_on_stdio(const struct mcp_exchange *x);
char *request_owner(const struct mcp_exchange *x); /* as mcp_call_owner; the caller frees */
bool  request_has_capability(const struct mcp_exchange *x, const char *name);
void  request_miss_capability(struct mcp_exchange *x, const char *name); /* ends it: -32021 */
const json_t *request_param(const struct mcp_exchange *x, const char *name);
const char   *request_param_string(const struct mcp_exchange *x, const char *name);

void request_cancel_all(struct requests *open);
void request_cancel_id(struct requests *open, const json_t *id);

/* The methods: one row each, in exchange.c. */
struct mcp_method {
    const char  *name;
    enum mcp_era eras;
    bool (*offered)(const struct mcp_server *s); /* NULL: always */
    bool        cacheable;                       /* modern results carry ttlMs and cacheScope */
    const char *name_param;                      /* what Mcp-Name repeats, or NULL */
    const char *extension;                       /* client capability it needs, or NULL */
    void (*run)(struct mcp_exchange *x);
};

void tools_list(struct mcp_exchange *x);
void tools_call(struct mcp_exchange *x);
void resources_list(struct mcp_exchange *x);
void resources_templates_list(struct mcp_exchange *x);
void resources_read(struct mcp_exchange *x);
void prompts_list(struct mcp_exchange *x);
void prompts_get(struct mcp_exchange *x);
void completion_complete(struct mcp_exchange *x);
void server_discover(struct mcp_exchange *x);
void session_initialize(struct mcp_exchange *x);
void session_ping(struct mcp_exchange *x);
void session_set_log_level(struct mcp_exchange *x);
void session_subscribe(struct mcp_exchange *x);
void session_unsubscribe(struct mcp_exchange *x);
void listen_start(struct mcp_exchange *x);
void tasks_get(struct mcp_exchange *x);
void tasks_update(struct mcp_exchange *x);
void tasks_cancel(struct mcp_exchange *x);
