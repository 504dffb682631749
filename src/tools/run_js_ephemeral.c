/* run_js_ephemeral - JavaScript in a sandbox of its own, which is gone afterwards. */
#include "tools/run_answer.h"
#include "tools/running.h"
#include "tools/tools.h"

struct arguments {
    const char              *image;
    struct running_arguments run;
};

#define AT(member) offsetof(struct arguments, member)
static const struct field fields[] = {
    {"image", FIELD_STRING, AT(image), false, 1, 200,
     "Node.js version as an image name: node:lts-slim (default), node:22."},
    {"code", FIELD_BYTES, AT(run.code), true, 0, CODE_MAX, RUNNING_CODE},
    {"dependencies", FIELD_LIST, AT(run.dependencies), false, 0, DEPENDENCIES_MAX,
     RUNNING_DEPENDENCIES, RUNNING_DEPENDENCIES_SCHEMA},
    {"timeoutMs", FIELD_INT, AT(run.timeout_ms), false, 1, RUN_MS_MAX, RUNNING_TIMEOUT},
    {0},
};
#undef AT

static void call(struct mcp_call *c)
{
    struct arguments a = {0};
    struct box      *b;

    mcp_call_decode(c, &a);
    if (!running_check(c, &a.run))
        return;
    b = tools_make_box(c, a.image, NULL, true);
    if (b)
        running_start(c, b, &a.run, true);
}

const struct mcp_tool tool_run_js_ephemeral = {
    .name = "run_js_ephemeral",
    .title = "Run JavaScript once",
    .description =
        "Run one script in a fresh sandbox that is removed when it ends: no id, nothing to clean "
        "up. The first choice for calculations, data conversion, charts and experiments; use "
        "sandbox_initialize and run_js when steps build on each other or a server must stay. npm "
        "dependencies are installed first (cached across calls). Only ./files/, the user's folder, "
        "outlives it: changed files are listed, images (PNG, JPEG, GIF, WebP up to 5 MiB) and "
        "small "
        "texts come with the result. Limits by default: 30 s, 512 MiB memory, 1 CPU, public "
        "internet only. Returns stdout, stderr, changed files and timings; a run that fails has "
        "isError with its verdict in front.",
    .fields = fields,
    .output_schema = run_answer_schema,
    .hints = {.destructive = true, .open_world = true},
    .call = call,
};
