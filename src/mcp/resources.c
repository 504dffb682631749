/* resources/list, resources/templates/list, resources/read. */
#include <stdlib.h>
#include <string.h>

#include "mcp/call_private.h"
#include "mcp/offer.h"
#include "mcp/request.h"
#include "mcp/template.h"

static json_t *describe(const struct mcp_resource *r, const char *uri_member,
                        const struct mcp_revision *revision)
{
    return json_pack("{s:s, s:s, s:s*, s:s*, s:s*}", uri_member, r->uri, "name", r->name, "title",
                     revision->has_structured ? r->title : NULL, "description", r->description,
                     "mimeType", r->mime_type);
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

static void list(struct mcp_exchange *x, const char *member,
                 json_t *(*describe_row)(const void *row, const struct mcp_revision *revision))
{
    json_t *result;

    if (offer_page(&x->server->resources, request_param(x, "cursor"), member, describe_row,
                   x->revision, &result) < 0)
        request_error(x, RPC_INVALID_PARAMS, "there is no such cursor", NULL);
    else
        request_respond(x, result);
}

void resources_list(struct mcp_exchange *x)
{
    list(x, "resources", describe_resource);
}

void resources_templates_list(struct mcp_exchange *x)
{
    list(x, "resourceTemplates", describe_template);
}

void mcp_call_not_found(struct mcp_call *c)
{
    json_t *data = json_pack("{s:s}", "uri", c->uri);

    mcp_call_error(c, c->revision->not_found, "there is no such resource", data);
}

static json_t *assemble(struct mcp_call *c)
{
    return json_pack("{s:o}", "contents", c->contents ? json_incref(c->contents) : json_array());
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
    if (!r) {
        request_error(x, x->revision->not_found, "there is no such resource",
                      json_pack("{s:s}", "uri", uri));
        return;
    }
    c = call_new(x);
    c->uri = strdup(uri);
    c->variables = variables;
    c->handler = r->read;
    c->assemble = assemble;
    call_start(c);
}
