/* prompts/list, prompts/get, and completion/complete for prompts and resource templates. */
#include <string.h>

#include "mcp/call_private.h"
#include "mcp/offer.h"
#include "mcp/request.h"

static json_t *describe(const void *row, const struct mcp_revision *revision)
{
    const struct mcp_prompt *p = row;
    json_t                  *prompt, *arguments;

    if (!offer_is_in(p->eras, revision))
        return NULL;
    prompt = rpc_pack("{s:s, s:s*, s:s*}", "name", p->name, "title",
                      revision->has_titles ? p->title : NULL, "description", p->description);
    offer_add_icons(prompt, p->icons, revision);
    if (!p->arguments)
        return prompt;
    arguments = json_array();
    for (const struct mcp_prompt_argument *a = p->arguments; a->name; a++)
        json_array_append_new(arguments,
                              rpc_pack("{s:s, s:s*, s:b}", "name", a->name, "description",
                                       a->description, "required", a->required));
    json_object_set_new(prompt, "arguments", arguments);
    return prompt;
}

void prompts_list(struct mcp_exchange *x)
{
    offer_list(x, &x->server->prompts, "prompts", describe, NULL);
}

static int check_arguments(const struct mcp_prompt *p, const json_t *arguments, struct err *e)
{
    const char *name;
    json_t     *value;

    if (arguments && !json_is_object(arguments))
        return err_set(e, ERR_INVALID, "arguments must be an object");
    json_object_foreach ((json_t *)arguments, name, value)
        if (!json_is_string(value))
            return err_set(e, ERR_INVALID, "arguments.%.60s must be a string", name);
    for (const struct mcp_prompt_argument *a = p->arguments; a && a->name; a++)
        if (a->required && !json_object_get(arguments, a->name))
            return err_set(e, ERR_INVALID, "arguments.%s is missing", a->name);
    return 0;
}

void prompts_get(struct mcp_exchange *x)
{
    const struct mcp_prompt *p = offer_prompt(x, request_param_string(x, "name"));
    const json_t            *arguments = request_param(x, "arguments");
    struct err               e = {0};
    struct mcp_call         *c;

    if (!p)
        err_set(&e, ERR_INVALID, "there is no such prompt");
    if (!p || check_arguments(p, arguments, &e) < 0) {
        request_error(x, RPC_INVALID_PARAMS, e.msg, NULL);
        return;
    }
    c = call_new(x, CALL_PROMPT, p->get);
    if (arguments)
        json_object_update(c->arguments, (json_t *)arguments);
    call_start(c);
}

/* ---- completion ---- */

/* Who completes what `ref` names; false when it names nothing. */
static bool find_completer(const struct mcp_exchange *x, const json_t *ref,
                           void (**ret)(struct mcp_call *c))
{
    const char *type = rpc_string(ref, "type"), *name = rpc_string(ref, "name"),
               *uri = rpc_string(ref, "uri");

    if (type && name && strcmp(type, "ref/prompt") == 0) {
        const struct mcp_prompt *p = offer_prompt(x, name);
        *ret = p ? p->complete : NULL;
        return p != NULL;
    }
    for (size_t i = 0; type && uri && i < x->server->resources.n; i++) {
        const struct mcp_resource *r = x->server->resources.rows[i];
        if (strcmp(type, "ref/resource") == 0 && strcmp(r->uri, uri) == 0) {
            *ret = r->complete;
            return true;
        }
    }
    return false;
}

void completion_complete(struct mcp_exchange *x)
{
    const json_t *argument = request_param(x, "argument");
    const json_t *chosen = json_object_get(request_param(x, "context"), "arguments");
    void (*complete)(struct mcp_call * c) = NULL;
    struct mcp_call *c;

    if (!rpc_string(argument, "name") || !rpc_string(argument, "value") ||
        !find_completer(x, request_param(x, "ref"), &complete)) {
        request_error(x, RPC_INVALID_PARAMS, "ref or argument names nothing that we have", NULL);
        return;
    }
    c = call_new(x, CALL_COMPLETION, complete ? complete : mcp_call_done);
    json_object_update(c->arguments, (json_t *)chosen);
    call_start(c);
}
