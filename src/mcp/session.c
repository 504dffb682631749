#include "mcp/session.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/random.h"
#include "base/str.h"
#include "mcp/capability.h"
#include "mcp/offer.h"
#include "mcp/request.h"

enum { SUBSCRIPTIONS_MAX = 1000, SUBSCRIPTION_BYTES_MAX = 262144 };

struct ask {
    struct ask          *next;
    unsigned             number;
    struct mcp_exchange *x;
    char                *key;
    session_answered    *answered;
    void                *owner;
};

struct mcp_session {
    LIST_ENTRY(mcp_session) entry;
    struct mcp_server            *server;
    struct requests               requests; /* open */
    const struct mcp_revision    *revision;
    char                         *principal;
    char                          name[sizeof "session:" + 32]; /* of what its calls make */
    json_t                       *capabilities;                 /* of the client */
    json_t                       *subscriptions;                /* an object: uri to owner */
    size_t                        subscription_bytes;
    int                           log_level;
    bool                          initialized, ready;
    unsigned                      last_ask;
    struct ask                   *asks;
    const struct mcp_session_ops *ops;
    void                         *owner;
};

static void ask_free(struct ask *a)
{
    free(a->key);
    free(a);
}

struct mcp_session *mcp_session_new(struct mcp_server *server, const char *principal,
                                    const struct mcp_session_ops *ops, void *owner)
{
    struct mcp_session *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    *s = (struct mcp_session){.server = server,
                              .revision = mcp_revision_newest_legacy(),
                              .principal = str_dup(principal),
                              .capabilities = json_object(),
                              .subscriptions = json_object(),
                              .log_level = mcp_log_level("info"),
                              .ops = ops,
                              .owner = owner};
    char id[33];
    random_id(id);
    snprintf(s->name, sizeof s->name, "session:%s", id);
    LIST_INSERT_HEAD(&server->sessions, s, entry);
    return s;
}

void mcp_session_free(struct mcp_session *s)
{
    if (!s)
        return;
    request_cancel_all(&s->requests);
    LIST_REMOVE(s, entry);
    if (s->server->session_ended)
        s->server->session_ended(s->server->context, s->name);
    while (s->asks) {
        struct ask *a = s->asks;
        s->asks = a->next;
        ask_free(a);
    }
    json_decref(s->capabilities);
    json_decref(s->subscriptions);
    free(s->principal);
    free(s);
}

bool mcp_session_is_initialized(const struct mcp_session *s)
{
    return s->initialized;
}

const char *mcp_session_version(const struct mcp_session *s)
{
    return s->revision->date;
}

const struct mcp_revision *session_revision(const struct mcp_session *s)
{
    return s->revision;
}

const json_t *session_capabilities(const struct mcp_session *s)
{
    return s->capabilities;
}

struct requests *session_requests(struct mcp_session *s)
{
    return &s->requests;
}

const char *session_owner(const struct mcp_session *s)
{
    return s->name;
}

int session_log_level(const struct mcp_session *s)
{
    return s->log_level;
}

void session_set_ready(struct mcp_session *s)
{
    s->ready = s->initialized;
}

/* ---- methods ---- */

/* What it asked for, if we speak that here; else the newest of its era. */
static const struct mcp_revision *negotiate(const struct mcp_exchange *x, const char *asked)
{
    const struct mcp_revision *known = mcp_revision_find(asked);
    bool ours = known && !known->stateless && (known->has_http || request_is_on_stdio(x));

    return ours ? known : mcp_revision_newest_legacy();
}

void session_initialize(struct mcp_exchange *x)
{
    struct mcp_session *s = x->session;
    const char         *asked = request_param_string(x, "protocolVersion");
    const json_t       *capabilities = request_param(x, "capabilities");
    json_t             *result;

    if (s->initialized || !asked || !capabilities_are_proper(capabilities)) {
        request_error(x, RPC_INVALID_PARAMS,
                      s->initialized
                          ? "already initialized"
                          : "initialize needs protocolVersion and capabilities of at most 64 KiB",
                      NULL);
        return;
    }
    s->revision = negotiate(x, asked);
    x->revision = s->revision;
    json_decref(s->capabilities);
    s->capabilities = json_deep_copy(capabilities);
    s->initialized = true;
    result = rpc_pack("{s:s, s:o, s:o}", "protocolVersion", s->revision->date, "capabilities",
                      offer_capabilities(s->server, s->revision), "serverInfo",
                      offer_about(s->server, s->revision));
    if (s->server->about->instructions)
        json_object_set_new(result, "instructions", json_string(s->server->about->instructions));
    request_respond(x, result);
}

void session_ping(struct mcp_exchange *x)
{
    request_respond(x, json_object());
}

void session_set_log_level(struct mcp_exchange *x)
{
    int level = mcp_log_level(request_param_string(x, "level"));

    if (level < 0) {
        request_error(x, RPC_INVALID_PARAMS, "level is none of debug to emergency", NULL);
        return;
    }
    x->session->log_level = level;
    request_respond(x, json_object());
}

void session_subscribe(struct mcp_exchange *x)
{
    struct mcp_session *s = x->session;
    const char         *uri = request_param_string(x, "uri");
    bool                is_new = uri && !json_object_get(s->subscriptions, uri);

    if (!uri || (is_new && (json_object_size(s->subscriptions) >= SUBSCRIPTIONS_MAX ||
                            s->subscription_bytes + strlen(uri) > SUBSCRIPTION_BYTES_MAX))) {
        request_error(x, RPC_INVALID_PARAMS, uri ? "too many subscriptions" : "uri is missing",
                      NULL);
        return;
    }
    if (is_new)
        s->subscription_bytes += strlen(uri);
    autofree char *owner = request_owner(x);
    json_object_set_new(s->subscriptions, uri, rpc_text(owner));
    if (s->server->subscribed)
        s->server->subscribed(s->server->context);
    request_respond(x, json_object());
}

void session_unsubscribe(struct mcp_exchange *x)
{
    const char *uri = request_param_string(x, "uri");

    if (!uri) {
        request_error(x, RPC_INVALID_PARAMS, "uri is missing", NULL);
        return;
    }
    if (json_object_del(x->session->subscriptions, uri) == 0)
        x->session->subscription_bytes -= strlen(uri);
    request_respond(x, json_object());
}

/* ---- requests of ours ---- */

void session_ask(struct mcp_session *s, struct mcp_exchange *x, const char *key, const char *method,
                 json_t *params_take, session_answered *answered, void *owner)
{
    struct ask *a = calloc(1, sizeof *a);
    char        id[32];

    if (!a)
        abort();
    *a = (struct ask){s->asks, ++s->last_ask, x, str_dup(key), answered, owner};
    s->asks = a;
    snprintf(id, sizeof id, "srv-%u", a->number);
    request_send(x, rpc_request(id, method, params_take));
}

void session_forget(struct mcp_session *s, const struct mcp_exchange *x)
{
    for (struct ask **at = &s->asks; *at;) {
        struct ask *a = *at;
        if (a->x != x) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        ask_free(a);
    }
}

void session_take_response(struct mcp_session *s, const struct rpc *rpc)
{
    const char *answered = json_string_value(rpc->id);
    char        id[32];

    for (struct ask **at = &s->asks; answered && *at; at = &(*at)->next) {
        snprintf(id, sizeof id, "srv-%u", (*at)->number);
        if (strcmp(id, answered) == 0) {
            struct ask *a = *at;
            *at = a->next;
            a->answered(a->owner, a->key, rpc->result);
            ask_free(a);
            return;
        }
    }
}

/* ---- to all ---- */

static bool is_for(const struct mcp_session *s, const char *principal)
{
    return s->ready && (!principal || strcmp(s->principal, principal) == 0);
}

static void send_to(struct mcp_session *s, json_t *message_take)
{
    s->ops->send(s->owner, message_take);
    json_decref(message_take);
}

void sessions_send(struct mcp_server *server, const char *principal, const char *method)
{
    struct mcp_session *s;

    LIST_FOREACH (s, &server->sessions, entry)
        if (is_for(s, principal))
            send_to(s, rpc_notification(method, NULL));
}

void sessions_subscriptions(const struct mcp_server *server, mcp_each_subscription *each,
                            void *data)
{
    struct mcp_session *s;
    const char         *uri;
    json_t             *owner;

    LIST_FOREACH (s, &server->sessions, entry)
        json_object_foreach (s->subscriptions, uri, owner)
            each(data, json_string_value(owner), s->principal, uri);
}

void sessions_send_updated(struct mcp_server *server, const char *principal, const char *uri)
{
    struct mcp_session *s;

    LIST_FOREACH (s, &server->sessions, entry)
        if (is_for(s, principal) && json_object_get(s->subscriptions, uri))
            send_to(s, rpc_notification("notifications/resources/updated",
                                        rpc_pack("{s:o}", "uri", rpc_text(uri))));
}
