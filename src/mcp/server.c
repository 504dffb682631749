#include "mcp/server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
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
        assert(!rows->fields != !rows->input_schema);
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

void mcp_server_list_resources(struct mcp_server *s, void (*list)(struct mcp_call *c))
{
    s->list_resources = list;
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
    s->states = states_new();
    s->tasks = tasks_new(s);
    return s;
}

void mcp_server_free(struct mcp_server *s)
{
    if (!s)
        return;
    request_cancel_all(&s->requests);
    tasks_free(s->tasks);
    states_free(s->states);
    free(s);
}

void mcp_server_stop(struct mcp_server *s)
{
    listen_end_all(s);
}

/* ---- what is offered ---- */

bool offer_has_tools(const struct mcp_server *s)
{
    return s->tools.n > 0;
}

bool offer_has_resources(const struct mcp_server *s)
{
    return s->resources.n > 0 || s->list_resources;
}

bool offer_has_prompts(const struct mcp_server *s)
{
    return s->prompts.n > 0;
}

bool offer_has_completions(const struct mcp_server *s)
{
    return offer_has_resources(s) || offer_has_prompts(s);
}

bool offer_has_tasks(const struct mcp_server *s)
{
    for (size_t i = 0; i < s->tools.n; i++)
        if (((const struct mcp_tool *)s->tools.rows[i])->task != MCP_TASK_NEVER)
            return true;
    return false;
}

static bool is_offered(enum mcp_era eras, enum mcp_era era)
{
    return eras == 0 || (eras & era);
}

const struct mcp_tool *offer_tool(const struct mcp_server *s, const char *name, enum mcp_era era)
{
    for (size_t i = 0; i < s->tools.n; i++) {
        const struct mcp_tool *t = s->tools.rows[i];
        if (is_offered(t->eras, era) && strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

const struct mcp_prompt *offer_prompt(const struct mcp_server *s, const char *name,
                                      enum mcp_era era)
{
    for (size_t i = 0; i < s->prompts.n; i++) {
        const struct mcp_prompt *p = s->prompts.rows[i];
        if (is_offered(p->eras, era) && strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

json_t *offer_about(const struct mcp_server *s, const struct mcp_revision *revision)
{
    const struct mcp_about *a = s->about;
    json_t                 *about = json_pack("{s:s, s:s}", "name", a->name, "version", a->version);

    if (a->title && revision->has_titles)
        json_object_set_new(about, "title", json_string(a->title));
    if (a->icons && revision->has_icons)
        json_object_set_new(about, "icons", json_loads(a->icons, 0, NULL));
    return about;
}

json_t *offer_capabilities(const struct mcp_server *s, const struct mcp_revision *revision)
{
    json_t *c = json_object();

    if (offer_has_tools(s))
        json_object_set_new(c, "tools", json_pack("{s:b}", "listChanged", 1));
    if (offer_has_prompts(s))
        json_object_set_new(c, "prompts", json_pack("{s:b}", "listChanged", 1));
    if (offer_has_resources(s))
        json_object_set_new(c, "resources",
                            json_pack("{s:b, s:b}", "listChanged", 1, "subscribe", 1));
    if (offer_has_completions(s) && revision->has_completions)
        json_object_set_new(c, "completions", json_object());
    json_object_set_new(c, "logging", json_object());
    if (offer_has_tasks(s) && revision->stateless)
        json_object_set_new(c, "extensions", json_pack("{s:{}}", MCP_NS "tasks"));
    return c;
}

json_t *offer_versions(const struct mcp_exchange *x)
{
    json_t *list = json_array();

    for (const struct mcp_revision *r = mcp_revisions; r->date; r++)
        if (r->has_http || request_is_on_stdio(x))
            json_array_append_new(list, json_string(r->date));
    return list;
}

/* ---- lists ---- */

/* A cursor is the index of the next row; or, past the rows, this and a cursor of who makes the
 * rest.
 */
static const char rest_mark = ':';

static void set_list_cache(struct mcp_exchange *x)
{
    x->ttl_ms = x->server->about->list_ttl_ms;
    x->cache_for_all = true; /* it depends on nobody */
}

const char *mcp_call_cursor(const struct mcp_call *c)
{
    const char *cursor = request_param_string(c->x, "cursor");

    return cursor && *cursor == rest_mark ? cursor + 1 : NULL;
}

void mcp_call_set_next(struct mcp_call *c, const char *cursor)
{
    free(c->next);
    c->next = str_format("%c%s", rest_mark, cursor);
}

static void start_rest(struct mcp_exchange *x, json_t *rows, void (*rest)(struct mcp_call *c))
{
    struct mcp_call *c = call_new(x, CALL_LIST, rest);

    json_array_extend(c->items, rows);
    call_start(c);
}

/* -1: it is none of ours. */
static int parse_cursor(const json_t *cursor, const struct offer_table *table, bool has_rest,
                        size_t *ret)
{
    const char *text = json_string_value(cursor);
    int64_t     index;

    *ret = 0;
    if (!cursor)
        return 0;
    if (!text)
        return -1;
    *ret = table->n;
    if (*text == rest_mark)
        return has_rest ? 0 : -1;
    if (str_parse_count(text, 1, (int64_t)table->n - 1, &index, NULL) < 0)
        return -1;
    *ret = (size_t)index;
    return 0;
}

void offer_list(struct mcp_exchange *x, const struct offer_table *table, const char *member,
                json_t *(*describe)(const void *row, const struct mcp_revision *revision),
                void (*rest)(struct mcp_call *c))
{
    autojson json_t *rows = json_array();
    json_t          *result;
    size_t           i;

    if (parse_cursor(request_param(x, "cursor"), table, rest, &i) < 0) {
        request_error(x, RPC_INVALID_PARAMS, "there is no such cursor", NULL);
        return;
    }
    for (; i < table->n && json_array_size(rows) < OFFER_PAGE; i++) {
        json_t *row = describe(table->rows[i], x->revision);
        if (row)
            json_array_append_new(rows, row);
    }
    if (i == table->n && rest) {
        start_rest(x, rows, rest);
        return;
    }
    result = json_pack("{s:O}", member, rows);
    if (i < table->n) {
        autofree char *next = str_format("%zu", i);
        json_object_set_new(result, "nextCursor", json_string(next));
    }
    if (!rest)
        set_list_cache(x);
    request_respond(x, result);
}

void server_discover(struct mcp_exchange *x)
{
    const char *instructions = x->server->about->instructions;
    json_t *result = json_pack("{s:o, s:o}", "supportedVersions", offer_versions(x), "capabilities",
                               offer_capabilities(x->server, x->revision));

    if (instructions)
        json_object_set_new(result, "instructions", json_string(instructions));
    set_list_cache(x);
    request_respond(x, result);
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
