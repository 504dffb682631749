/* Theory of operation. A message enters through mcp_exchange_start and passes a pipeline whose
 * order is fixed by the protocol (each check must fail in isolation, with its own code and HTTP
 * status): envelope, era, an id that is free; modern: metadata, version, Mcp-Method, method,
 * Mcp-Name and Mcp-Param-*, log level, extension; legacy: initialized, method. Then its method
 * runs. What does not end at once stays in a list, its session's or the server's; cancellation
 * finds it in the session's by its id. An exchange ends in exactly one place, `end`. */
#include "mcp/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp/capability.h"
#include "mcp/headers.h"
#include "mcp/offer.h"
#include "mcp/request.h"
#include "mcp/session.h"

#define NS MCP_NS

const char *const mcp_log_levels[] = {"debug",    "info",  "notice",    "warning", "error",
                                      "critical", "alert", "emergency", NULL};

static const struct mcp_method methods[] = {
    {"server/discover", MCP_MODERN, .cacheable = true, .run = server_discover},
    {"initialize", MCP_LEGACY, .run = session_initialize},
    {"ping", MCP_LEGACY, .run = session_ping},
    {"logging/setLevel", MCP_LEGACY, .run = session_set_log_level},
    {"tools/list", MCP_BOTH, offer_has_tools, .cacheable = true, .run = tools_list},
    {"tools/call", MCP_BOTH, offer_has_tools, .name_param = "name", .run = tools_call},
    {"resources/list", MCP_BOTH, offer_has_resources, .cacheable = true, .run = resources_list},
    {"resources/templates/list", MCP_BOTH, offer_has_resources, .cacheable = true,
     .run = resources_templates_list},
    {"resources/read", MCP_BOTH, offer_has_resources, .cacheable = true, .name_param = "uri",
     .run = resources_read},
    {"resources/subscribe", MCP_LEGACY, offer_has_resources, .run = session_subscribe},
    {"resources/unsubscribe", MCP_LEGACY, offer_has_resources, .run = session_unsubscribe},
    {"prompts/list", MCP_BOTH, offer_has_prompts, .cacheable = true, .run = prompts_list},
    {"prompts/get", MCP_BOTH, offer_has_prompts, .name_param = "name", .run = prompts_get},
    {"completion/complete", MCP_BOTH, offer_has_completions, .run = completion_complete},
    {"subscriptions/listen", MCP_MODERN, .run = listen_start},
    {"tasks/get", MCP_MODERN, offer_has_tasks, .name_param = "taskId",
     .extension = MCP_TASKS_EXTENSION, .run = tasks_get},
    {"tasks/update", MCP_MODERN, offer_has_tasks, .name_param = "taskId",
     .extension = MCP_TASKS_EXTENSION, .run = tasks_update},
    {"tasks/cancel", MCP_MODERN, offer_has_tasks, .name_param = "taskId",
     .extension = MCP_TASKS_EXTENSION, .run = tasks_cancel},
    {0},
};

int mcp_log_level(const char *name)
{
    for (int i = 0; name && mcp_log_levels[i]; i++)
        if (strcmp(mcp_log_levels[i], name) == 0)
            return i;
    return -1;
}

/* ---- the end of an exchange ---- */

static void end(struct mcp_exchange *x, int status, json_t *message_take)
{
    LIST_REMOVE(x, entry); /* first: whoever walks the list meanwhile must not meet it */
    x->ops->finish(x->owner, status, message_take);
    json_decref(message_take);
    if (x->gone)
        *x->gone = true;
    json_decref(x->message);
    free(x->principal);
    free(x);
}

bool request_is_modern(const struct mcp_exchange *x)
{
    return x->revision->stateless;
}

bool request_is_on_stdio(const struct mcp_exchange *x)
{
    return !x->on_http;
}

/* What every modern result carries besides its own content. */
static void decorate(const struct mcp_exchange *x, json_t *result)
{
    json_t *meta = json_object_get(result, "_meta");

    if (!meta) {
        meta = json_object();
        json_object_set_new(result, "_meta", meta);
    }
    json_object_set_new(meta, NS "serverInfo", offer_about(x->server, x->revision));
    if (!json_object_get(result, "resultType"))
        json_object_set_new(result, "resultType", json_string("complete"));
    if (x->method->cacheable && strcmp(rpc_string(result, "resultType"), "complete") == 0) {
        json_object_set_new(result, "ttlMs", json_integer(x->ttl_ms));
        json_object_set_new(result, "cacheScope",
                            json_string(x->cache_for_all ? "public" : "private"));
    }
}

void request_respond(struct mcp_exchange *x, json_t *result_take)
{
    if (request_is_modern(x))
        decorate(x, result_take);
    end(x, 200, rpc_result(x->rpc.id, result_take));
}

void request_error_status(struct mcp_exchange *x, int status, int code, const char *message,
                          json_t *data_take)
{
    end(x, status, rpc_error(x->rpc.id, code, message, data_take));
}

void request_error(struct mcp_exchange *x, int code, const char *message, json_t *data_take)
{
    request_error_status(x, 200, code, message, data_take);
}

void request_send(struct mcp_exchange *x, json_t *message_take)
{
    x->ops->send(x->owner, message_take);
    json_decref(message_take);
}

/* ---- cancelling ---- */

static void cancel(struct mcp_exchange *x)
{
    void (*stop)(void *) = x->cancel;
    void *data = x->cancel_data;

    x->cancel = NULL;
    if (stop)
        stop(data);
    end(x, 200, NULL);
}

void request_cancel_all(struct requests *open)
{
    while (!LIST_EMPTY(open)) /* a hook may end others too: so from the beginning each time */
        cancel(LIST_FIRST(open));
}

static struct mcp_exchange *find_id(const struct requests *open, const json_t *id)
{
    struct mcp_exchange *x;

    LIST_FOREACH (x, open, entry)
        if (json_equal((json_t *)x->rpc.id, (json_t *)id))
            break;
    return x;
}

void request_cancel_id(struct requests *open, const json_t *id)
{
    struct mcp_exchange *x = find_id(open, id);

    if (x)
        cancel(x);
}

static void drop(void *owner, json_t *message)
{
    (void)owner;
    (void)message;
}

static void drop_finish(void *owner, int status, json_t *message)
{
    (void)owner;
    (void)status;
    (void)message;
}

void mcp_exchange_abandon(struct mcp_exchange *x)
{
    static const struct mcp_exchange_ops nowhere = {.send = drop, .finish = drop_finish};

    x->ops = &nowhere;
    cancel(x);
}

/* ---- questions that methods ask ---- */

const json_t *request_param(const struct mcp_exchange *x, const char *name)
{
    return json_object_get(x->rpc.params, name);
}

const char *request_param_string(const struct mcp_exchange *x, const char *name)
{
    return rpc_string(x->rpc.params, name);
}

char *request_owner(const struct mcp_exchange *x)
{
    if (*x->principal)
        return str_format("token:%s", x->principal);
    if (request_is_on_stdio(x))
        return str_dup("stdio");
    return str_dup(x->session ? session_owner(x->session) : "");
}

bool request_has_capability(const struct mcp_exchange *x, const char *name)
{
    return capability_has(x->capabilities, name);
}

void request_miss_capability(struct mcp_exchange *x, const char *name)
{
    request_error_status(x, 400, RPC_MISSING_CAPABILITY,
                         "the client lacks a capability that this needs",
                         rpc_pack("{s:o}", "requiredCapabilities", capability_describe(name)));
}

/* ---- the pipeline ---- */

static const json_t *meta_of(const struct rpc *rpc)
{
    return json_object_get(rpc->params, "_meta");
}

bool mcp_is_modern(const json_t *message, const char *version_header)
{
    const json_t              *params = json_object_get(message, "params");
    const struct mcp_revision *named;

    if (json_object_get(json_object_get(params, "_meta"), NS "protocolVersion"))
        return true;
    if (!version_header)
        return false;
    named = mcp_revision_find(version_header);
    return !named || named->stateless;
}

static bool fail(struct mcp_exchange *x, int status, int code, const char *message)
{
    request_error_status(x, status, code, message, NULL);
    return false;
}

/* Each check ends the exchange itself when it fails and returns false. */
static bool check_metadata(struct mcp_exchange *x)
{
    const json_t *meta = meta_of(&x->rpc);
    const json_t *capabilities = json_object_get(meta, NS "clientCapabilities");

    if (x->ops->header && !headers_version(x))
        return fail(x, 400, RPC_HEADER_MISMATCH, "the header MCP-Protocol-Version is missing");
    if (!rpc_string(meta, NS "protocolVersion"))
        return fail(x, 400, RPC_INVALID_PARAMS, "_meta lacks " NS "protocolVersion");
    if (!capabilities_are_proper(capabilities))
        return fail(x, 400, RPC_INVALID_PARAMS,
                    "_meta needs " NS "clientCapabilities of at most 64 KiB");
    x->capabilities = capabilities;
    return true;
}

static bool check_log_level(struct mcp_exchange *x)
{
    const json_t *level = json_object_get(meta_of(&x->rpc), NS "logLevel");

    x->log_level = level ? mcp_log_level(json_string_value(level)) : -1;
    if (level && x->log_level < 0)
        return fail(x, 200, RPC_INVALID_PARAMS, "_meta " NS "logLevel is no level");
    return true;
}

static bool check_version(struct mcp_exchange *x)
{
    const char *asked = rpc_string(meta_of(&x->rpc), NS "protocolVersion");

    if (x->ops->header && strcmp(headers_version(x), asked) != 0)
        return fail(x, 400, RPC_HEADER_MISMATCH,
                    "the header MCP-Protocol-Version differs from _meta");
    if (strcmp(asked, mcp_revision_modern()->date) == 0)
        return true;
    request_error_status(
        x, 400, RPC_UNSUPPORTED_VERSION, "this protocol version is not supported",
        rpc_pack("{s:o, s:o}", "supported", offer_versions(x), "requested", rpc_text(asked)));
    return false;
}

static bool fail_initialize(struct mcp_exchange *x)
{
    autojson json_t *versions = offer_versions(x);
    autofree char   *list = json_dumps(versions, JSON_COMPACT);
    autofree char *why = str_format("%s has no initialize; without _meta it begins an older one of "
                                    "%s",
                                    x->revision->date, list);

    return fail(x, 404, RPC_METHOD_NOT_FOUND, why);
}

static bool find_method(struct mcp_exchange *x)
{
    enum mcp_era era = mcp_revision_era(x->revision);

    for (const struct mcp_method *m = methods; m->name; m++)
        if ((m->eras & era) && strcmp(m->name, x->rpc.method) == 0 &&
            (!m->offered || m->offered(x->server))) {
            x->method = m;
            return true;
        }
    if (era == MCP_MODERN && strcmp(x->rpc.method, "initialize") == 0)
        return fail_initialize(x);
    return fail(x, era == MCP_MODERN ? 404 : 200, RPC_METHOD_NOT_FOUND,
                "there is no such method here");
}

static bool check_headers(struct mcp_exchange *x)
{
    struct err e = {0};

    if (!x->ops->header || headers_check(x, &e) == 0)
        return true;
    return fail(x, 400, RPC_HEADER_MISMATCH, e.msg);
}

static bool check_extension(struct mcp_exchange *x)
{
    if (!x->method->extension || request_has_capability(x, x->method->extension))
        return true;
    request_miss_capability(x, x->method->extension);
    return false;
}

static bool pass_modern(struct mcp_exchange *x)
{
    struct err e = {0};

    if (!check_metadata(x) || !check_version(x))
        return false;
    if (x->ops->header && headers_check_method(x, &e) < 0)
        return fail(x, 400, RPC_HEADER_MISMATCH, e.msg);
    return find_method(x) && check_headers(x) && check_log_level(x) && check_extension(x);
}

static bool pass_legacy(struct mcp_exchange *x)
{
    bool may_come_first =
        strcmp(x->rpc.method, "initialize") == 0 || strcmp(x->rpc.method, "ping") == 0;

    if (!mcp_session_is_initialized(x->session) && !may_come_first)
        return fail(x, 200, RPC_INVALID_PARAMS,
                    "not initialized: begin with initialize, or send _meta with " NS
                    "protocolVersion on each request");
    x->capabilities = session_capabilities(x->session);
    x->log_level = session_log_level(x->session);
    return find_method(x);
}

/* ---- notifications and responses of the client ---- */

/* Without a session an id names nothing: modern clients on HTTP all count from 1, and cancel by
 * closing the response stream. */
static void take_notification(const struct mcp_origin *from, bool modern, const struct rpc *rpc)
{
    const json_t *id = json_object_get(rpc->params, "requestId");

    if (!from->session)
        return;
    if (strcmp(rpc->method, "notifications/cancelled") == 0 && id)
        request_cancel_id(session_requests(from->session), id);
    else if (strcmp(rpc->method, "notifications/initialized") == 0 && !modern)
        session_set_ready(from->session);
}

/* ---- the beginning ---- */

/* Where the ids of requests must differ: on stdio, in both eras, and in a session. */
static struct requests *open_of(const struct mcp_origin *from)
{
    return from->session ? session_requests(from->session) : &from->server->requests;
}

static struct mcp_exchange *open_exchange(const struct mcp_origin *from, json_t *message,
                                          const struct rpc *rpc, bool modern,
                                          const struct mcp_exchange_ops *ops, void *owner)
{
    struct mcp_exchange *x = calloc(1, sizeof *x);
    const json_t        *token = json_object_get(meta_of(rpc), "progressToken");

    if (!x)
        abort();
    *x = (struct mcp_exchange){
        .server = from->server,
        .session = modern ? NULL : from->session,
        .revision = modern ? mcp_revision_modern() : session_revision(from->session),
        .principal = str_dup(from->principal ? from->principal : ""),
        .message = json_incref(message),
        .rpc = *rpc,
        .progress_token = json_is_string(token) || json_is_integer(token) ? token : NULL,
        .progress = -1,
        .on_http = from->on_http,
        .ops = ops,
        .owner = owner,
    };
    LIST_INSERT_HEAD(open_of(from), x, entry);
    return x;
}

static void refuse(const json_t *id, const char *why, const struct mcp_exchange_ops *ops,
                   void *owner)
{
    autojson json_t *answer = rpc_error(id, RPC_INVALID_REQUEST, why, NULL);

    ops->finish(owner, 400, answer);
}

struct mcp_exchange *mcp_exchange_start(const struct mcp_origin *from, json_t *message,
                                        const struct mcp_exchange_ops *ops, void *owner)
{
    const char          *header = ops->header ? ops->header(owner, "MCP-Protocol-Version") : NULL;
    bool                 modern = mcp_is_modern(message, header) || !from->session;
    struct rpc           rpc;
    struct err           e = {0};
    struct mcp_exchange *x;
    bool                 gone = false;

    if (rpc_parse(message, &rpc, &e) < 0) {
        refuse(rpc.id, e.msg, ops, owner);
        return NULL;
    }
    if (rpc.kind != RPC_REQUEST) {
        if (rpc.kind == RPC_NOTIFICATION)
            take_notification(from, modern, &rpc);
        else if (from->session)
            session_take_response(from->session, &rpc);
        ops->finish(owner, 202, NULL);
        return NULL;
    }
    if (from->session && find_id(open_of(from), rpc.id)) { /* without it: that is the other's */
        refuse(NULL, "a request with this id is still open", ops, owner);
        return NULL;
    }
    x = open_exchange(from, message, &rpc, modern, ops, owner);
    x->gone = &gone;
    if (modern ? pass_modern(x) : pass_legacy(x))
        x->method->run(x);
    if (gone)
        return NULL;
    x->gone = NULL;
    return x;
}
