/* run_js_ephemeral - JavaScript in a sandbox of its own, which is gone afterwards. */
#include "tools/admission.h"
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
     "Node.js version: {image} (default), node:22.{images}"},
    {"code", FIELD_BYTES, AT(run.code), true, 0, CODE_MAX,
     "An ES module, as for run_js. Example: console.log(process.version)"},
    {"dependencies", FIELD_LIST, AT(run.dependencies), false, 0, DEPENDENCIES_MAX,
     "npm packages, as for run_js: [{\"name\":\"lodash\",\"version\":\"^4.17\"}]. Default: none.",
     RUNNING_DEPENDENCIES_SCHEMA},
    {"timeoutMs", FIELD_INT, AT(run.timeout_ms), false, 1, RUN_MS_MAX, RUNNING_TIMEOUT},
    {0},
};
#undef AT

static void begin(struct mcp_call *c)
{
    struct arguments a = {0};
    struct box      *b;

    mcp_call_decode(c, &a);
    b = tools_make_box(c, a.image, NULL, true);
    if (b)
        running_start(c, b, &a.run, true);
}

static void call(struct mcp_call *c)
{
    struct arguments a = {0};

    mcp_call_decode(c, &a);
    if (running_check(c, &a.run) && tools_check_box(c, a.image, NULL))
        admission_wait(tools_of(c)->admission, c, begin);
}

const struct mcp_tool tool_run_js_ephemeral = {
    .name = "run_js_ephemeral",
    .title = "Run JavaScript once",
    .description =
        "Run one script in a fresh sandbox that is removed when it ends: no id, nothing to "
        "clean up. The first choice for calculations, conversions, charts, experiments; use "
        "sandbox_initialize and run_js when steps build on each other or a server must stay. "
        "npm dependencies are installed first (cached). Only ./files/, the user's folder, "
        "outlives it; changed files, images and short texts come back as with run_js. "
        "Limits: {timeout}, {memory} memory, {cpus} CPU, network: {network}. Returns stdout, "
        "stderr, changed files, timings; a failed run has isError and starts with its "
        "verdict.",
    .fields = fields,
    .output_schema = run_answer_schema,
    .hints = {.destructive = true, .open_world = true},
    .call = call,
};
