/* tools/list and tools/call. */
#include "mcp/call_private.h"
#include "mcp/offer.h"
#include "mcp/request.h"

static json_t *describe(const void *row, const struct mcp_revision *revision)
{
    const struct mcp_tool *t = row;
    json_t                *tool;

    if (!offer_is_in(t->eras, revision))
        return NULL;
    tool = rpc_pack("{s:s, s:s, s:o}", "name", t->name, "description", t->description,
                    "inputSchema", offer_schema(t));
    if (revision->has_annotations)
        json_object_set_new(tool, "annotations",
                            rpc_pack("{s:s*, s:b, s:b, s:b, s:b}", "title", t->title,
                                     "readOnlyHint", t->hints.read_only, "destructiveHint",
                                     t->hints.destructive, "idempotentHint", t->hints.idempotent,
                                     "openWorldHint", t->hints.open_world));
    if (t->title && revision->has_titles)
        json_object_set_new(tool, "title", json_string(t->title));
    if (t->output_schema && revision->has_structured)
        json_object_set_new(tool, "outputSchema", offer_output_schema(t));
    offer_add_icons(tool, t->icons, revision);
    return tool;
}

void tools_list(struct mcp_exchange *x)
{
    offer_list(x, &x->server->tools, "tools", describe, NULL);
}

static const char *missing_capability(const struct mcp_exchange *x, const struct mcp_tool *t)
{
    if (t->needs && !request_has_capability(x, t->needs))
        return t->needs;
    if (t->task == MCP_TASK_REQUIRED && !request_has_capability(x, MCP_TASKS_EXTENSION))
        return MCP_TASKS_EXTENSION;
    return NULL;
}

void tools_call(struct mcp_exchange *x)
{
    const struct mcp_tool *t = offer_tool(x, request_param_string(x, "name"));
    json_t                *arguments = (json_t *)request_param(x, "arguments");
    const char            *missing = t ? missing_capability(x, t) : NULL;
    struct mcp_call       *c;
    struct err             e = {0};

    if (!t || (arguments && !json_is_object(arguments))) {
        request_error(x, RPC_INVALID_PARAMS,
                      t ? "arguments must be an object" : "there is no such tool", NULL);
        return;
    }
    if (missing && request_is_modern(x)) {
        request_miss_capability(x, missing);
        return;
    }
    c = call_new(x, CALL_TOOL, t->call);
    c->tool = t->name;
    c->fields = t->fields;
    c->may_be_task = t->task != MCP_TASK_NEVER;
    if (arguments)
        json_object_update(c->arguments, arguments);
    /* What a model can mend is a result that it sees, not an error of the protocol. */
    if (missing)
        mcp_call_fail(c, "the client does not support %s, which this needs", missing);
    else if (t->fields && fields_check(t->fields, c->arguments, "arguments", &e) < 0)
        mcp_call_fail(c, "%s", e.msg);
    else
        call_start(c);
}
