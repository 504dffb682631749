#include "mcp/offer.h"

#include <assert.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp/call_private.h"

/* ---- what is offered ---- */

/* JSON that the program brought along: it is good, or the program is wrong. */
static json_t *parse_own(const char *text)
{
    json_t *j = json_loads(text, 0, NULL);

    assert(j);
    return j;
}

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

bool offer_is_in(enum mcp_era eras, const struct mcp_revision *revision)
{
    return eras == 0 || (eras & mcp_revision_era(revision));
}

const struct mcp_tool *offer_tool(const struct mcp_exchange *x, const char *name)
{
    const struct offer_table *tools = &x->server->tools;

    for (size_t i = 0; name && i < tools->n; i++) {
        const struct mcp_tool *t = tools->rows[i];
        if (offer_is_in(t->eras, x->revision) && strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

const struct mcp_prompt *offer_prompt(const struct mcp_exchange *x, const char *name)
{
    const struct offer_table *prompts = &x->server->prompts;

    for (size_t i = 0; name && i < prompts->n; i++) {
        const struct mcp_prompt *p = prompts->rows[i];
        if (offer_is_in(p->eras, x->revision) && strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}

void offer_add_icons(json_t *row, const char *icons, const struct mcp_revision *revision)
{
    if (icons && revision->has_icons)
        json_object_set_new(row, "icons", parse_own(icons));
}

json_t *offer_about(const struct mcp_server *s, const struct mcp_revision *revision)
{
    const struct mcp_about *a = s->about;
    json_t *about = rpc_pack("{s:s, s:s, s:s*}", "name", a->name, "version", a->version, "title",
                             revision->has_titles ? a->title : NULL);

    offer_add_icons(about, a->icons, revision);
    return about;
}

json_t *offer_capabilities(const struct mcp_server *s, const struct mcp_revision *revision)
{
    json_t *c = json_object();

    if (offer_has_tools(s))
        json_object_set_new(c, "tools", rpc_pack("{s:b}", "listChanged", 1));
    if (offer_has_prompts(s))
        json_object_set_new(c, "prompts", rpc_pack("{s:b}", "listChanged", 1));
    if (offer_has_resources(s))
        json_object_set_new(c, "resources",
                            rpc_pack("{s:b, s:b}", "listChanged", 1, "subscribe", 1));
    if (offer_has_completions(s) && revision->has_completions)
        json_object_set_new(c, "completions", json_object());
    json_object_set_new(c, "logging", json_object());
    if (offer_has_tasks(s) && revision->stateless)
        json_object_set_new(c, "extensions", rpc_pack("{s:{}}", MCP_NS "tasks"));
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

json_t *offer_schema(const struct mcp_tool *t)
{
    return t->fields ? fields_schema(t->fields) : parse_own(t->input_schema);
}

json_t *offer_output_schema(const struct mcp_tool *t)
{
    return t->output_schema ? parse_own(t->output_schema) : NULL;
}

/* ---- lists ---- */

static void set_list_cache(struct mcp_exchange *x)
{
    x->ttl_ms = x->server->about->list_ttl_ms;
    x->cache_for_all = true; /* it depends on nobody */
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
    if (*text == REST_MARK)
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
    result = rpc_pack("{s:O}", member, rows);
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
    json_t *result = rpc_pack("{s:o, s:o}", "supportedVersions", offer_versions(x), "capabilities",
                              offer_capabilities(x->server, x->revision));

    if (instructions)
        json_object_set_new(result, "instructions", json_string(instructions));
    set_list_cache(x);
    request_respond(x, result);
}
