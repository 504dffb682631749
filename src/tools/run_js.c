/* run_js - JavaScript in a sandbox that sandbox_initialize made. */
#include "tools/run_answer.h"
#include "tools/running.h"
#include "tools/tools.h"

struct arguments {
    const char              *container_id;
    struct running_arguments run;
};

#define AT(member) offsetof(struct arguments, member)
static const struct field fields[] = {
    {"container_id", FIELD_STRING, AT(container_id), true, 1, 128, TOOLS_CONTAINER_ID},
    {"code", FIELD_BYTES, AT(run.code), true, 0, CODE_MAX, RUNNING_CODE},
    {"dependencies", FIELD_LIST, AT(run.dependencies), false, 0, DEPENDENCIES_MAX,
     RUNNING_DEPENDENCIES, RUNNING_DEPENDENCIES_SCHEMA},
    {"listenOnPort", FIELD_INT, AT(run.listen_on_port), false, 1, 65535,
     "Start it as a background server on this port: returns when the port answers; "
     "the server goes on, reachable at 127.0.0.1 of the server's machine. One on the same port is "
     "replaced. Default: wait for the script's end."},
    {"network", FIELD_STRING, AT(run.network), false, 1, 20,
     "Network policy of the sandbox from this run on, as for sandbox_initialize. Default: as "
     "before.",
     "{\"enum\":[\"none\",\"npm\",\"internet\"]}"},
    {"timeoutMs", FIELD_INT, AT(run.timeout_ms), false, 1, RUN_MS_MAX, RUNNING_TIMEOUT_OR_PORT},
    {0},
};
#undef AT

static void call(struct mcp_call *c)
{
    struct arguments a = {0};
    struct box      *b;

    mcp_call_decode(c, &a);
    b = tools_find_box(c, a.container_id);
    if (b && running_check(c, &a.run) && running_check_network(c, b, &a.run))
        running_start(c, b, &a.run, false);
}

const struct mcp_tool tool_run_js = {
    .name = "run_js",
    .title = "Run JavaScript in a sandbox",
    .description =
        "Install npm dependencies and run JavaScript in a sandbox made by "
        "sandbox_initialize. Use it when steps share /workspace or for a server "
        "(listenOnPort); for one independent script use run_js_ephemeral, for shell commands "
        "sandbox_exec. Calls on one sandbox run one after the other; /workspace and packages "
        "stay. Write files for the user to ./files/: changed ones are listed, images (PNG, "
        "JPEG, GIF, WebP up to 5 MiB) and short texts come with the result. At the time "
        "limit, or beyond {memory} of memory, the script and all its processes are killed. "
        "Returns stdout, stderr, changed files, timings; a failed run has isError and starts "
        "with its verdict and exit code. Output beyond 48 KiB is cut in the middle, the "
        "whole is a resource.",
    .fields = fields,
    .output_schema = run_answer_schema,
    .hints = {.destructive = true, .open_world = true},
    .call = call,
};
