#include "tools/tools.h"

#include <string.h>

#include "tools/errors.h"

const char tools_instructions[] =
    "Jerboa runs JavaScript in isolated Node.js sandboxes.\n"
    "One script: run_js_ephemeral. Several steps, a server or shell commands: sandbox_initialize, "
    "then run_js and sandbox_exec, then sandbox_stop.\n"
    "Code is an ES module (import, top-level await). npm packages go into dependencies: no npm "
    "install in code.\n"
    "Files for the user go to ./files/; what is written there comes back with the result, images "
    "as images.\n"
    "A failed run has isError and says what to do; stdout, stderr and the reason are in the "
    "result.";

const char *const tools_policy_names[] = {"none", "npm", "internet", NULL};

struct tools *tools_of(const struct mcp_call *c)
{
    return mcp_call_context(c);
}

struct box *tools_find_box(struct mcp_call *c, const char *id)
{
    struct box *b = boxes_find(tools_of(c)->boxes, id, mcp_call_owner(c));

    if (!b)
        errors_fail(c, ERROR_UNKNOWN_SANDBOX, id);
    return b;
}

static const struct policy *find_policy(const struct tools *t, const char *name)
{
    for (size_t i = 0; tools_policy_names[i]; i++)
        if (strcmp(tools_policy_names[i], name) == 0)
            return t->policies[i];
    return NULL;
}

struct box *tools_make_box(struct mcp_call *c, const char *image, const char *network,
                           bool one_call)
{
    struct tools   *t = tools_of(c);
    struct box_spec spec = {.image = image, .owner = mcp_call_owner(c), .one_call = one_call};
    struct share    share;
    struct err      e = {0};
    struct box     *b;

    if (network && !(spec.policy = find_policy(t, network))) {
        errors_fail(c, ERROR_NETWORK, network);
        return NULL;
    }
    if (shares_get(t->shares, mcp_call_principal(c), &share, &e) < 0) {
        errors_fail(c, ERROR_FILES, e.msg);
        return NULL;
    }
    spec.files_dir = share.dir;
    b = boxes_make(t->boxes, &spec, &e);
    if (!b)
        errors_fail(c,
                    e.kind == ERR_INVALID ? ERROR_BAD_IMAGE
                    : e.kind == ERR_LIMIT ? ERROR_TOO_MANY
                                          : ERROR_CANNOT_START,
                    e.msg);
    return b;
}

void tools_register(struct mcp_server *s)
{
#define TOOLS_ADD(name) mcp_server_add_tool(s, &tool_##name);
    TOOLS(TOOLS_ADD)
#undef TOOLS_ADD
    mcp_server_add_resources(s, tools_resources);
    mcp_server_set_resource_lister(s, tools_list_resources);
    mcp_server_add_prompts(s, tools_prompts);
}
