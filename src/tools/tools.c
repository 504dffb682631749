#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>

#include "tools/errors.h"
#include "tools/witness.h"

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
        errors_fail(c, UNKNOWN_SANDBOX, id);
    return b;
}

const struct policy *tools_find_policy(const struct mcp_call *c, const char *name)
{
    for (size_t i = 0; tools_policy_names[i]; i++)
        if (strcmp(tools_policy_names[i], name) == 0)
            return tools_of(c)->policies[i];
    return NULL;
}

bool tools_check_box(struct mcp_call *c, const char *image, const char *network)
{
    if (boxes_check_image(tools_of(c)->boxes, image, &(struct err){0}) < 0) {
        errors_fail(c, BAD_IMAGE, image);
        return false;
    }
    if (network && !tools_find_policy(c, network)) {
        errors_fail(c, NETWORK, network);
        return false;
    }
    return true;
}

struct box *tools_make_box(struct mcp_call *c, const char *image, const char *network,
                           bool one_call)
{
    struct tools   *t = tools_of(c);
    struct box_spec spec = {.image = image,
                            .owner = mcp_call_owner(c),
                            .policy = network ? tools_find_policy(c, network) : NULL,
                            .one_call = one_call,
                            .call = witness_call(c)};
    struct share    share;
    struct err      e = {0};
    struct box     *b;

    if (shares_get(t->shares, mcp_call_principal(c), &share, &e) < 0) {
        errors_fail(c, FILES, e.msg);
        return NULL;
    }
    spec.files_dir = share.dir;
    b = boxes_make(t->boxes, &spec, &e);
    if (!b)
        errors_fail(c, CANNOT_START, e.msg);
    return b;
}

/* ---- registering ---- */

static const struct mcp_tool *const table[] = {
#define TOOLS_ROW(name) &tool_##name,
    TOOLS(TOOLS_ROW)
#undef TOOLS_ROW
};
enum { TABLE = sizeof table / sizeof table[0] };

/* Every call passes here, so none goes without a line in the audit log. */
static void call_tool(struct mcp_call *c)
{
    const struct mcp_tool *const *row = table;

    if (!witness_begin(c))
        return;
    while (strcmp((*row)->name, mcp_call_tool(c)) != 0)
        row++;
    (*row)->call(c);
}

static size_t count_fields(const struct field *fields)
{
    size_t n = 0;

    while (fields[n].name)
        n++;
    return n;
}

static struct mcp_tool fill(const struct words *w, const struct mcp_tool *from)
{
    struct mcp_tool tool = *from;
    size_t          n = count_fields(from->fields);
    struct field   *fields = calloc(n + 1, sizeof *fields);

    if (!fields)
        abort();
    for (size_t i = 0; i < n; i++) {
        fields[i] = from->fields[i];
        fields[i].description = words_fill(w, from->fields[i].description);
    }
    tool.fields = fields;
    tool.call = call_tool;
    tool.description = words_fill(w, from->description);
    return tool;
}

void tools_register(struct tools *t)
{
    t->rows = calloc(TABLE + 1, sizeof *t->rows);
    if (!t->rows)
        abort();
    for (size_t i = 0; i < TABLE; i++)
        t->rows[i] = fill(&t->words, table[i]);
    mcp_server_add_tools(t->mcp, t->rows);
    mcp_server_add_resources(t->mcp, tools_resources);
    mcp_server_set_resource_lister(t->mcp, tools_list_resources);
    mcp_server_add_prompts(t->mcp, tools_prompts);
}

void tools_done(struct tools *t)
{
    for (struct mcp_tool *row = t->rows; row && row->name; row++) {
        for (const struct field *f = row->fields; f->name; f++)
            free((char *)f->description);
        free((struct field *)row->fields);
        free((char *)row->description);
    }
    free(t->rows);
}
