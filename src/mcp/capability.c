#include "mcp/capability.h"

#include <stddef.h>
#include <string.h>

#include "mcp/rpc.h"

/* Which capability a question needs; a member of its parameters may need more. The first row that
 * fits counts. */
static const struct {
    const char *method, *member, *value, *capability;
} questions[] = {
    {"elicitation/create", "mode", "url", "elicitation/url"},
    {"elicitation/create", NULL, NULL, "elicitation/form"},
    {"sampling/createMessage", "tools", NULL, "sampling/tools"},
    {"sampling/createMessage", NULL, NULL, "sampling"},
    {"roots/list", NULL, NULL, "roots"},
};

static bool fits(const json_t *params, const char *member, const char *value)
{
    const json_t *given = member ? json_object_get(params, member) : NULL;

    if (!member)
        return true;
    return given && (!value || (json_is_string(given) && !strcmp(json_string_value(given), value)));
}

const char *capability_to_ask(const char *method, const json_t *params)
{
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        if (strcmp(questions[i].method, method) == 0 &&
            fits(params, questions[i].member, questions[i].value))
            return questions[i].capability;
    return NULL;
}

bool capabilities_are_proper(const json_t *declared)
{
    return json_is_object(declared) &&
           json_dumpb(declared, NULL, 0, JSON_COMPACT) <= CAPABILITIES_MAX;
}

bool capability_has(const json_t *declared, const char *path)
{
    const char   *slash = strchr(path, '/');
    const json_t *whole;

    if (!slash)
        return json_is_object(json_object_get(declared, path));
    whole = json_object_getn(declared, path, (size_t)(slash - path));
    /* Who declares elicitation and no mode means forms. */
    if (strcmp(path, "elicitation/form") == 0 && json_is_object(whole) &&
        json_object_size(whole) == 0)
        return true;
    return json_is_object(json_object_get(whole, slash + 1));
}

json_t *capability_describe(const char *path)
{
    const char *slash = strchr(path, '/');

    if (!slash)
        return rpc_pack("{s:{}}", path);
    return rpc_pack("{s%:{s:{}}}", path, (size_t)(slash - path), slash + 1);
}
