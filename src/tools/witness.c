#include "tools/witness.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/errors.h"
#include "tools/tools.h"

struct witness {
    struct trail        *trail;
    struct trail_subject subject;
    const char          *tool;
    int64_t              began_ms;
};

/* ---- what is asked ---- */

static json_t *digest(const json_t *text)
{
    if (!json_is_string(text)) /* a command that will be refused */
        return json_null();
    return trail_digest(json_string_value(text), json_string_length(text));
}

static json_t *digests(const json_t *list)
{
    json_t *rows = json_array(), *row;
    size_t  i;

    json_array_foreach ((json_t *)list, i, row) {
        json_array_append_new(rows, digest(row));
    }
    return rows;
}

/* A row may have any form here: the tool has not looked at it. */
static json_t *asked(const json_t *row, const char *member)
{
    const json_t *text = json_object_get(row, member);

    if (!json_is_string(text))
        return json_null();
    return trail_asked(json_string_value(text), json_string_length(text));
}

static json_t *packages(const json_t *list)
{
    json_t *rows = json_array(), *row;
    size_t  i;

    json_array_foreach ((json_t *)list, i, row) {
        json_array_append_new(rows, json_pack("{s:o, s:o}", "name", asked(row, "name"), "version",
                                              asked(row, "version")));
    }
    return rows;
}

static json_t *as_it_is(const json_t *value)
{
    return json_incref((json_t *)value);
}

/* Arguments of all tools that are told, by their names. */
static const struct told {
    const char *argument, *member;
    json_t *(*show)(const json_t *value);
} told[] = {
    {"code", "code", digest},
    {"commands", "commands", digests},
    {"dependencies", "dependencies", packages},
    {"image", "image", as_it_is},
    {"network", "policy", as_it_is},
    {"port", "port", as_it_is},
    {"listenOnPort", "port", as_it_is},
    {"timeoutMs", "timeoutMs", as_it_is},
};

static json_t *describe(const struct witness *w, const json_t *arguments)
{
    json_t *m = trail_members(&w->subject);

    json_object_set_new(m, "tool", json_string(w->tool));
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        const json_t *value = json_object_get(arguments, told[i].argument);
        if (value && !json_is_null(value))
            json_object_set_new(m, told[i].member, told[i].show(value));
    }
    return m;
}

/* ---- its end ---- */

static void on_ended(void *data, enum mcp_ending how)
{
    static const char *const outcomes[] = {
        [MCP_ANSWERED] = "answered", [MCP_FAILED] = "failed", [MCP_CANCELLED] = "cancelled"};
    struct witness *w = data;
    json_t         *m = trail_members(&w->subject);

    json_object_del(m, "sandbox");
    json_object_set_new(m, "tool", json_string(w->tool));
    json_object_set_new(m, "outcome", json_string(outcomes[how]));
    json_object_set_new(m, "ms", json_integer(clock_ms() - w->began_ms));
    trail_write(w->trail, TRAIL_CALL_ENDED, m, NULL);
    free(w);
}

/* ---- the face ---- */

bool witness_begin(struct mcp_call *c)
{
    struct trail   *t = tools_of(c)->trail;
    const json_t   *arguments = mcp_call_arguments(c);
    const char     *id = json_string_value(json_object_get(arguments, "container_id"));
    struct witness *w;
    struct err      e = {0};
    int             r;

    if (!t)
        return true;
    w = calloc(1, sizeof *w);
    if (!w)
        abort();
    *w = (struct witness){.trail = t, .tool = mcp_call_tool(c), .began_ms = clock_ms()};
    trail_new_call(w->subject.call);
    trail_set_owner(&w->subject, mcp_call_owner(c));
    trail_set_sandbox(&w->subject, id ? id : "");
    mcp_call_set_witness(c, w, on_ended);
    r = trail_write(t, TRAIL_CALL, describe(w, arguments), &e);
    if (trail_allows(t, r))
        return true;
    errors_fail(c, AUDIT, e.sys ? strerror(e.sys) : "no room");
    return false;
}

const char *witness_call(const struct mcp_call *c)
{
    const struct witness *w = mcp_call_witness(c);

    return w ? w->subject.call : NULL;
}

struct trail_subject witness_subject(const struct mcp_call *c)
{
    const struct witness *w = mcp_call_witness(c);

    return w ? w->subject : (struct trail_subject){0};
}
