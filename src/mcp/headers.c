/* A client repeats an argument whose schema has x-mcp-header in Mcp-Param-*:
 *
 *   argument               header     we
 *   string, boolean        the same   go on
 *   number                 the same   go on: by value, 42.0 is 42
 *   one of these           another    refuse
 *   one of these           none       refuse
 *   none, null             none       go on
 *   list, object           none       go on: the tool will say what it expected
 *   none, null, list, …    any        refuse: a gateway would act on what the tool never sees
 *
 * Headers that no schema names are not looked at. That none comes twice is the transport's care. */
#include "mcp/headers.h"

#include <math.h>
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

/* What RFC 9110 lets a client send, as far as it is ASCII. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if ((*text < ' ' && *text != '\t') || *text > '~')
            return false;
    return true;
}

/* What a header value stands for; NULL: a letter that no header has, or a sentinel with bad base64
 * in it. The caller frees. */
static char *decoded(const char *text)
{
    static const char begin[] = "=?base64?", end[] = "?=";
    size_t            length = strlen(text), edges = strlen(begin) + strlen(end), size;

    if (!is_plain(text))
        return NULL;
    if (length < edges || !str_starts(text, begin) || strcmp(text + length - strlen(end), end) != 0)
        return str_dup(text);
    autofree uint8_t *data = base64_decode(text + strlen(begin), length - edges, &size);
    if (!data || memchr(data, '\0', size))
        return NULL;
    return str_ndup((char *)data, size);
}

/* By value. Where one is real, only up to where reals still tell whole numbers apart. */
static bool is_same_number(const json_t *a, const json_t *b)
{
    double value = json_number_value(a);

    if (json_is_integer(a) && json_is_integer(b))
        return json_integer_value(a) == json_integer_value(b);
    return json_is_number(b) && value == json_number_value(b) &&
           (json_typeof(a) == json_typeof(b) || fabs(value) < 1LL << 53);
}

static bool says(const char *text, const json_t *wanted)
{
    if (json_is_string(wanted))
        return strcmp(text, json_string_value(wanted)) == 0;
    if (json_is_boolean(wanted))
        return strcmp(text, json_is_true(wanted) ? "true" : "false") == 0;
    autojson json_t *number = json_loads(text, JSON_DECODE_ANY, NULL);
    return json_is_number(wanted) && is_same_number(wanted, number);
}

static int compare(struct mcp_exchange *x, const char *header, const json_t *wanted, struct err *e)
{
    const char *value = get(x, header);

    if (!value)
        return err_set(e, ERR_INVALID, "the header %.60s is missing", header);
    autofree char *text = decoded(value);
    if (!text)
        return err_set(e, ERR_INVALID,
                       "the header %.60s has bad base64, or letters that belong into base64",
                       header);
    if (!says(text, wanted))
        return err_set(e, ERR_INVALID, "the header %.60s differs from the body", header);
    return 0;
}

int headers_check_method(struct mcp_exchange *x, struct err *e)
{
    const char *value = get(x, "Mcp-Method");

    if (!value)
        return err_set(e, ERR_INVALID, "the header Mcp-Method is missing");
    /* Literally: only names and parameters may come as base64. */
    if (strcmp(value, x->rpc.method) != 0)
        return err_set(e, ERR_INVALID, "the header Mcp-Method differs from the body");
    return 0;
}

static int check_param(struct mcp_exchange *x, const char *suffix, const json_t *argument,
                       struct err *e)
{
    autofree char *header = str_format("Mcp-Param-%s", suffix);

    if (json_is_string(argument) || json_is_number(argument) || json_is_boolean(argument))
        return compare(x, header, argument, e);
    if (get(x, header))
        return err_set(e, ERR_INVALID, "the header %.60s has no argument of its kind in the body",
                       header);
    return 0;
}

/* Every property that carries x-mcp-header, through nested properties: those too whose arguments
 * are not there. */
static int check_params(struct mcp_exchange *x, const json_t *schema, const json_t *arguments,
                        int depth, struct err *e)
{
    const char *name;
    json_t     *property;

    if (depth > NESTING_MAX)
        return 0;
    json_object_foreach (json_object_get(schema, "properties"), name, property) {
        const char   *suffix = json_string_value(json_object_get(property, "x-mcp-header"));
        const json_t *argument = json_object_get(arguments, name);

        if (suffix)
            TRY(check_param(x, suffix, argument, e));
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
    const struct mcp_tool *t = offer_tool(x, request_param_string(x, "name"));

    if (!t || !mentions_headers(t))
        return 0;
    autojson json_t *schema = offer_schema(t);
    return check_params(x, schema, request_param(x, "arguments"), 0, e);
}

int headers_check(struct mcp_exchange *x, struct err *e)
{
    const char   *param = x->method->name_param;
    const json_t *name = param ? request_param(x, param) : NULL;

    if (json_is_string(name))
        TRY(compare(x, "Mcp-Name", name, e));
    return strcmp(x->method->name, "tools/call") == 0 ? check_tool(x, e) : 0;
}
