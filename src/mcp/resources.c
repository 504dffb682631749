/* resources/list, resources/templates/list, resources/read. */
#include "base/str.h"
#include "mcp/call_private.h"
#include "mcp/offer.h"
#include "mcp/request.h"
#include "mcp/template.h"

static json_t *describe(const struct mcp_resource *r, const char *uri_member,
                        const struct mcp_revision *revision)
{
    json_t *row = rpc_pack("{s:s, s:s, s:s*, s:s*, s:s*}", uri_member, r->uri, "name", r->name,
                           "title", revision->has_titles ? r->title : NULL, "description",
                           r->description, "mimeType", r->mime_type);

    offer_add_icons(row, r->icons, revision);
    return row;
}

static json_t *describe_resource(const void *row, const struct mcp_revision *revision)
{
    const struct mcp_resource *r = row;

    return template_is(r->uri) ? NULL : describe(r, "uri", revision);
}

static json_t *describe_template(const void *row, const struct mcp_revision *revision)
{
    const struct mcp_resource *r = row;

    return template_is(r->uri) ? describe(r, "uriTemplate", revision) : NULL;
}

void resources_list(struct mcp_exchange *x)
{
    offer_list(x, &x->server->resources, "resources", describe_resource, x->server->list_resources);
}

void resources_templates_list(struct mcp_exchange *x)
{
    offer_list(x, &x->server->resources, "resourceTemplates", describe_template, NULL);
}

static const struct mcp_resource *find(const struct mcp_server *s, const char *uri,
                                       json_t **ret_variables)
{
    for (size_t i = 0; i < s->resources.n; i++) {
        const struct mcp_resource *r = s->resources.rows[i];
        *ret_variables = template_match(r->uri, uri);
        if (*ret_variables)
            return r;
    }
    return NULL;
}

void resources_read(struct mcp_exchange *x)
{
    const char                *uri = request_param_string(x, "uri");
    json_t                    *variables = NULL;
    const struct mcp_resource *r = uri ? find(x->server, uri, &variables) : NULL;
    struct mcp_call           *c;

    if (!uri) {
        request_error(x, RPC_INVALID_PARAMS, "uri is missing", NULL);
        return;
    }
    c = call_new(x, CALL_READ, r ? r->read : mcp_call_not_found);
    c->uri = str_dup(uri);
    c->variables = variables;
    call_start(c);
}
