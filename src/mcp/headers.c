#include "mcp/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"
#include "mcp/offer.h"

enum { NESTING_MAX = 16 };

static const char *get(struct mcp_exchange *x, const char *name)
{
    return x->ops->header(x->owner, name);
}

const char *headers_version(struct mcp_exchange *x)
{
    return get(x, "MCP-Protocol-Version");
}

/* A copy without blanks around it. The caller frees. */
static char *trimmed(const char *value)
{
    size_t size;

    value += strspn(value, " \t");
    size = strlen(value);
    while (size > 0 && strchr(" \t", value[size - 1]))
        size--;
    return strndup(value, size);
}

/* What a header value stands for; NULL: a sentinel with bad base64 in it. The caller frees. */
static char *decoded(const char *value)
{
    static const char begin[] = "=?base64?", end[] = "?=";
    autofree char    *text = trimmed(value);
    size_t            length = strlen(text), edges = strlen(begin) + strlen(end), size;

    if (length < edges || !str_starts(text, begin) || strcmp(text + length - strlen(end), end) != 0)
        return strdup(text);
    autofree uint8_t *data = base64_decode(text + strlen(begin), length - edges, &size);
    if (!data || memchr(data, '\0', size))
        return NULL;
    return strndup((char *)data, size);
}

static int compare(struct mcp_exchange *x, const char *header, const char *wanted, struct err *e)
{
    const char *value = get(x, header);

    if (!value)
        return err_set(e, ERR_INVALID, "the header %.60s is missing", header);
    autofree char *text = decoded(value);
    if (!text)
        return err_set(e, ERR_INVALID, "the header %.60s is not proper base64", header);
    if (strcmp(text, wanted) != 0)
        return err_set(e, ERR_INVALID, "the header %.60s differs from the body", header);
    return 0;
}

int headers_check_method(struct mcp_exchange *x, struct err *e)
{
    const char *value = get(x, "Mcp-Method");

    if (!value)
        return err_set(e, ERR_INVALID, "the header Mcp-Method is missing");
    /* Literally: only names and parameters may come as base64. */
    autofree char *text = trimmed(value);
    if (strcmp(text, x->rpc.method) != 0)
        return err_set(e, ERR_INVALID, "the header Mcp-Method differs from the body");
    return 0;
}

/* An argument as its header shows it; NULL: it has none. The caller frees. */
static char *shown(const json_t *value)
{
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_integer(value))
        return str_format("%lld", (long long)json_integer_value(value));
    if (json_is_boolean(value))
        return strdup(json_is_true(value) ? "true" : "false");
    return NULL;
}

/* Every property that carries x-mcp-header, through nested properties. */
static int check_params(struct mcp_exchange *x, const json_t *schema, const json_t *arguments,
                        int depth, struct err *e)
{
    const char *name;
    json_t     *property;

    if (depth > NESTING_MAX)
        return 0;
    json_object_foreach (json_object_get(schema, "properties"), name, property) {
        const char    *suffix = json_string_value(json_object_get(property, "x-mcp-header"));
        const json_t  *argument = json_object_get(arguments, name);
        autofree char *wanted = suffix ? shown(argument) : NULL;
        autofree char *header = suffix ? str_format("Mcp-Param-%s", suffix) : NULL;

        if (wanted)
            TRY(compare(x, header, wanted, e));
        if (json_is_object(argument))
            TRY(check_params(x, property, argument, depth + 1, e));
    }
    return 0;
}

/* Most tools have no such property: only the texts are looked at then. */
static bool mentions_headers(const struct mcp_tool *t)
{
    static const char word[] = "x-mcp-header";

    if (t->input_schema)
        return strstr(t->input_schema, word);
    for (const struct field *f = t->fields; f->name; f++)
        if (f->schema && strstr(f->schema, word))
            return true;
    return false;
}

static int check_tool(struct mcp_exchange *x, struct err *e)
{
    const char            *name = request_param_string(x, "name");
    const struct mcp_tool *t = name ? offer_tool(x->server, name, MCP_MODERN) : NULL;

    if (!t || !mentions_headers(t))
        return 0;
    autojson json_t *schema = offer_schema(t);
    return check_params(x, schema, request_param(x, "arguments"), 0, e);
}

int headers_check(struct mcp_exchange *x, struct err *e)
{
    const char *param = x->method->name_param;
    const char *name = param ? request_param_string(x, param) : NULL;

    if (name)
        TRY(compare(x, "Mcp-Name", name, e));
    return strcmp(x->method->name, "tools/call") == 0 ? check_tool(x, e) : 0;
}
