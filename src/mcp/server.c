#include "mcp/server.h"

#include <assert.h>
#include <stdlib.h>

#include "mcp/call_private.h"
#include "mcp/listen.h"
#include "mcp/offer.h"
#include "mcp/request.h"
#include "mcp/session.h"
#include "mcp/state.h"
#include "mcp/tasks.h"

/* ---- registering ---- */

static void add(struct offer_table *t, const void *row)
{
    assert(t->n < OFFER_MAX);
    t->rows[t->n++] = row;
}

void mcp_server_add_tools(struct mcp_server *s, const struct mcp_tool *rows)
{
    for (; rows->name; rows++) {
        assert(rows->description && !rows->fields != !rows->input_schema);
        add(&s->tools, rows);
    }
}

void mcp_server_add_resources(struct mcp_server *s, const struct mcp_resource *rows)
{
    for (; rows->name; rows++)
        add(&s->resources, rows);
}

void mcp_server_add_prompts(struct mcp_server *s, const struct mcp_prompt *rows)
{
    for (; rows->name; rows++)
        add(&s->prompts, rows);
}

void mcp_server_set_resource_lister(struct mcp_server *s, void (*list)(struct mcp_call *c))
{
    s->list_resources = list;
}

void mcp_server_on_session_end(struct mcp_server *s,
                               void (*ended)(void *context, const char *owner))
{
    s->session_ended = ended;
}

void mcp_server_on_subscribe(struct mcp_server *s, void (*subscribed)(void *context))
{
    s->subscribed = subscribed;
}

void mcp_server_subscriptions(const struct mcp_server *s, mcp_each_subscription *each, void *data)
{
    sessions_subscriptions(s, each, data);
    listen_subscriptions(s, each, data);
}

struct mcp_server *mcp_server_new(struct event_base *base, const struct mcp_about *about,
                                  void *context)
{
    struct mcp_server *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->base = base;
    s->about = about;
    s->context = context;
    s->states = states_new(STATES_WINDOW);
    s->tasks = tasks_new(s);
    return s;
}

void mcp_server_free(struct mcp_server *s)
{
    if (!s)
        return;
    assert(LIST_EMPTY(&s->sessions)); /* the transport ends first */
    request_cancel_all(&s->requests);
    tasks_free(s->tasks);
    states_free(s->states);
    free(s);
}

void mcp_server_stop(struct mcp_server *s)
{
    listen_end_all(s);
}

void mcp_server_give_up(struct mcp_server *s)
{
    call_give_up_all(s);
}

/* ---- changes ---- */

static void tell_changed(struct mcp_server *s, const char *principal, const char *method,
                         enum listen_kind kind)
{
    sessions_send(s, principal, method);
    listen_tell(s, principal, kind, method);
}

void mcp_server_tools_changed(struct mcp_server *s)
{
    tell_changed(s, NULL, "notifications/tools/list_changed", LISTEN_TOOLS);
}

void mcp_server_prompts_changed(struct mcp_server *s)
{
    tell_changed(s, NULL, "notifications/prompts/list_changed", LISTEN_PROMPTS);
}

void mcp_server_resources_changed(struct mcp_server *s, const char *principal)
{
    tell_changed(s, principal, "notifications/resources/list_changed", LISTEN_RESOURCES);
}

void mcp_server_resource_updated(struct mcp_server *s, const char *principal, const char *uri)
{
    sessions_send_updated(s, principal, uri);
    listen_tell_updated(s, principal, uri);
}
