#include "mcp/listen.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "mcp/offer.h"
#include "mcp/request.h"
#include "mcp/tasks.h"

enum { LISTEN_LIST_MAX = 1000, LISTEN_BYTES_MAX = 262144 };

struct listener {
    LIST_ENTRY(listener) entry;
    struct mcp_exchange *x;
    bool                 wants[LISTEN_KINDS];
    const json_t        *uris, *tasks; /* arrays of the request, or NULL */
};

static const char *const kind_names[LISTEN_KINDS] = {
    [LISTEN_TOOLS] = "toolsListChanged",
    [LISTEN_PROMPTS] = "promptsListChanged",
    [LISTEN_RESOURCES] = "resourcesListChanged",
};

static void send_on(struct listener *l, const char *method, json_t *params_take)
{
    json_object_set_new(params_take, "_meta",
                        rpc_pack("{s:O}", MCP_NS "subscriptionId", l->x->rpc.id));
    request_send(l->x, rpc_notification(method, params_take));
}

static void forget(void *data)
{
    struct listener *l = data;

    LIST_REMOVE(l, entry);
    free(l);
}

static bool strings_have(const json_t *list, const char *text)
{
    size_t  i;
    json_t *item;

    json_array_foreach ((json_t *)list, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    return false;
}

static bool is_string_list(const json_t *list)
{
    size_t  i;
    json_t *item;

    if (!json_is_array(list) || json_array_size(list) > LISTEN_LIST_MAX)
        return false;
    json_array_foreach ((json_t *)list, i, item)
        if (!json_is_string(item))
            return false;
    return true;
}

/* The subset that is accepted, as it is acknowledged. */
static json_t *accepted_subset(struct listener *l, const json_t *asked)
{
    json_t *accepted = json_object();

    for (int k = 0; k < LISTEN_KINDS; k++) {
        l->wants[k] = json_is_true(json_object_get(asked, kind_names[k]));
        if (l->wants[k])
            json_object_set_new(accepted, kind_names[k], json_true());
    }
    if (l->uris)
        json_object_set(accepted, "resourceSubscriptions", (json_t *)l->uris);
    if (l->tasks)
        json_object_set_new(accepted, "taskIds",
                            tasks_known(l->x->server->tasks, l->x->principal, l->tasks));
    return accepted;
}

void listen_start(struct mcp_exchange *x)
{
    const json_t    *asked = request_param(x, "notifications");
    const json_t    *uris = json_object_get(asked, "resourceSubscriptions");
    const json_t    *tasks = json_object_get(asked, "taskIds");
    struct listener *l;

    if (json_dumpb(x->message, NULL, 0, JSON_COMPACT) > LISTEN_BYTES_MAX) {
        request_error(x, RPC_INVALID_PARAMS, "too much to listen to: 256 KiB at most", NULL);
        return; /* it is kept for as long as the stream lives */
    }
    if (!json_is_object(asked) || (uris && !is_string_list(uris)) ||
        (tasks && !is_string_list(tasks))) {
        request_error(x, RPC_INVALID_PARAMS, "notifications must say what to listen to", NULL);
        return;
    }
    if (tasks && !request_has_capability(x, MCP_TASKS_EXTENSION)) {
        request_miss_capability(x, MCP_TASKS_EXTENSION);
        return;
    }
    l = calloc(1, sizeof *l);
    if (!l)
        abort();
    *l = (struct listener){.x = x, .uris = uris, .tasks = tasks};
    LIST_INSERT_HEAD(&x->server->listeners, l, entry);
    x->cancel = forget;
    x->cancel_data = l;
    send_on(l, "notifications/subscriptions/acknowledged",
            rpc_pack("{s:o}", "notifications", accepted_subset(l, asked)));
    if (uris && x->server->subscribed)
        x->server->subscribed(x->server->context);
}

void listen_subscriptions(const struct mcp_server *s, mcp_each_subscription *each, void *data)
{
    struct listener *l;
    size_t           i;
    json_t          *uri;

    LIST_FOREACH (l, &s->listeners, entry) {
        autofree char *owner = request_owner(l->x);
        json_array_foreach ((json_t *)l->uris, i, uri)
            each(data, owner, l->x->principal, json_string_value(uri));
    }
}

static bool is_for(const struct listener *l, const char *principal)
{
    return !principal || strcmp(l->x->principal, principal) == 0;
}

void listen_tell(struct mcp_server *s, const char *principal, enum listen_kind kind,
                 const char *method)
{
    struct listener *l;

    LIST_FOREACH (l, &s->listeners, entry)
        if (l->wants[kind] && is_for(l, principal))
            send_on(l, method, json_object());
}

void listen_tell_updated(struct mcp_server *s, const char *principal, const char *uri)
{
    struct listener *l;

    LIST_FOREACH (l, &s->listeners, entry)
        if (strings_have(l->uris, uri) && is_for(l, principal))
            send_on(l, "notifications/resources/updated", rpc_pack("{s:o}", "uri", rpc_text(uri)));
}

void listen_tell_task(struct mcp_server *s, const char *principal, const char *task_id,
                      json_t *task_take)
{
    struct listener *l;

    LIST_FOREACH (l, &s->listeners, entry)
        if (strings_have(l->tasks, task_id) && is_for(l, principal))
            send_on(l, "notifications/tasks", json_deep_copy(task_take));
    json_decref(task_take);
}

/* On stdio, where nothing closes, the protocol wants it said twice. */
static void end_one(struct mcp_exchange *x)
{
    json_t *meta = rpc_pack("{s:O}", MCP_NS "subscriptionId", x->rpc.id);

    forget(x->cancel_data);
    x->cancel = NULL;
    if (request_is_on_stdio(x))
        request_send(x, rpc_notification("notifications/cancelled",
                                         rpc_pack("{s:O, s:s}", "requestId", x->rpc.id, "reason",
                                                  "the server is about to stop")));
    request_respond(x, rpc_pack("{s:o}", "_meta", meta));
}

void listen_end_all(struct mcp_server *s)
{
    while (!LIST_EMPTY(&s->listeners))
        end_one(LIST_FIRST(&s->listeners)->x);
}
