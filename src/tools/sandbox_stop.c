/* sandbox_stop - ends a sandbox: answers at once, the teardown goes on behind. */
#include "tools/errors.h"
#include "tools/tools.h"

struct arguments {
    const char *container_id;
};

static const struct field fields[] = {
    {"container_id", FIELD_STRING, offsetof(struct arguments, container_id), true, 1, 128,
     TOOLS_CONTAINER_ID},
    {0},
};

static void call(struct mcp_call *c)
{
    struct arguments a = {0};
    struct box      *b;

    mcp_call_decode(c, &a);
    b = tools_find_box(c, a.container_id);
    if (!b)
        return;
    box_stop(b, "its owner stopped it");
    mcp_call_structured(c, json_pack("{s:s}", "container_id", box_id(b)));
    mcp_call_finish(c, "Container %s removed.", box_id(b));
}

const struct mcp_tool tool_sandbox_stop = {
    .name = "sandbox_stop",
    .title = "Stop a sandbox",
    .description =
        "Stop and remove a sandbox made by sandbox_initialize, with its processes, "
        "background servers and /workspace; the user's /workspace/files stays. Call it when "
        "you are done: it frees memory and its place at once. Runs in progress end. An unknown or "
        "expired id is an error and changes nothing. Returns a "
        "line that names the id. Not needed after run_js_ephemeral.",
    .fields = fields,
    .output_schema = "{\"type\":\"object\",\"properties\":{\"container_id\":{\"type\":\"string\"}},"
                     "\"required\":[\"container_id\"]}",
    .hints = {.destructive = true, .idempotent = true},
    .call = call,
};
