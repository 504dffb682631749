/* sandbox_initialize - starts a sandbox that persists until it is stopped. */
#include <stdlib.h>

#include "base/fd.h"
#include "base/str.h"
#include "tools/admission.h"
#include "tools/errors.h"
#include "tools/progress.h"
#include "tools/tools.h"

struct arguments {
    const char *image, *network;
    int64_t     port;
};

static const struct field fields[] = {
    {"image", FIELD_STRING, offsetof(struct arguments, image), false, 1, 200,
     "Node.js version: {image} (default), node:22, node:24.1.{images}"},
    {"port", FIELD_INT, offsetof(struct arguments, port), false, 1, 65535,
     "Port inside the sandbox to publish on 127.0.0.1 of the server's machine, under the same "
     "number; run_js with listenOnPort publishes by itself. Default: none."},
    {"network", FIELD_STRING, offsetof(struct arguments, network), false, 1, 20,
     "Narrower network policy for this sandbox: none, npm (registries only), internet (public "
     "addresses). Default: the server's.",
     "{\"enum\":[\"none\",\"npm\",\"internet\"]}"},
    {0},
};

struct starting {
    struct mcp_call *call;
    struct box      *box;
    struct turn      turn;
    uint16_t         port;
    struct progress  progress;
};

static void starting_free(void *data)
{
    struct starting *s = data;

    turn_end(&s->turn);
    progress_done(&s->progress);
    free(s);
}

static void answer(struct starting *s, uint16_t host_port)
{
    struct mcp_call *c = s->call;
    json_t          *url = host_port ? json_sprintf("http://127.0.0.1:%u", host_port) : json_null();

    mcp_call_text(c, box_id(s->box));
    if (host_port !=
        s->port) { /* the contract is one block with the id: more only when it is news */
        autofree char *news = str_format("Port %u is published as 127.0.0.1:%u: another sandbox "
                                         "has %u.",
                                         s->port, host_port, s->port);
        mcp_call_text(c, news);
    }
    if (!box_files_dir(s->box) && !tools_of(c)->told_private) {
        mcp_call_text(
            c, "FILES_DIR is not set on this server: /workspace/files goes with the sandbox.");
        tools_of(c)->told_private = true;
    }
    mcp_call_structured(c, json_pack("{s:s, s:o, s:b}", "container_id", box_id(s->box), "url", url,
                                     "filesPersist", box_files_dir(s->box) != NULL));
    mcp_call_done(c);
}

static void on_ready(void *owner)
{
    struct starting *s = owner;
    struct err       e = {0};
    uint16_t         host_port = 0;

    if (s->port && box_publish(s->box, s->port, &host_port, &e) < 0) {
        box_stop(s->box, "its port could not be published");
        errors_fail(s->call, PORT, e.msg);
        return;
    }
    answer(s, host_port);
}

static void on_lost(void *owner, const struct err *e)
{
    struct starting *s = owner;

    if (box_lacks_runtime(s->box))
        errors_fail(s->call, NO_RUNTIME, e->msg);
    else
        errors_fail(s->call, CANNOT_START, e->msg);
}

static void on_waits(void *owner, const char *sentence)
{
    struct starting *s = owner;

    progress_tell(&s->progress, sentence);
}

static const struct turn_ops turn_ops = {on_ready, on_lost, on_waits};

static void on_cancel(struct mcp_call *c)
{
    struct starting *s = mcp_call_data(c);

    if (s->turn.box)
        box_stop(s->box, "its call was cancelled");
}

static void begin(struct mcp_call *c)
{
    struct arguments a = {0};
    struct box      *b;
    struct starting *s;

    mcp_call_decode(c, &a);
    b = tools_make_box(c, a.image, a.network, false);
    if (!b)
        return;
    s = calloc(1, sizeof *s);
    if (!s)
        abort();
    *s = (struct starting){.call = c, .box = b, .port = (uint16_t)a.port};
    progress_init(&s->progress, box_base(b), c);
    mcp_call_set_data(c, s, starting_free);
    mcp_call_on_cancel(c, on_cancel);
    turn_start(&s->turn, b, NULL, &turn_ops, s);
}

static void call(struct mcp_call *c)
{
    struct arguments a = {0};

    mcp_call_decode(c, &a);
    if (tools_check_box(c, a.image, a.network))
        admission_wait(tools_of(c)->admission, c, begin);
}

const struct mcp_tool tool_sandbox_initialize = {
    .name = "sandbox_initialize",
    .title = "Start a sandbox",
    .description =
        "Start an isolated Node.js sandbox and return its id for run_js, sandbox_exec and "
        "sandbox_stop. Use it for several steps that share files, or for a server; for one "
        "script run_js_ephemeral is simpler. /workspace persists between calls and is gone "
        "with the sandbox; /workspace/files is the user's folder and outlives it (unless "
        "filesPersist is false). Limits: {memory} memory, {cpus} CPU, {pids} processes, "
        "{disk} disk, network: {network}. It ends by "
        "sandbox_stop, with your session{ends}; at most {sandboxes} exist; one more waits a while, "
        "then is an error. "
        "Returns one line: the id.",
    .fields = fields,
    .output_schema =
        "{\"type\":\"object\",\"properties\":{\"container_id\":{\"type\":\"string\"},"
        "\"url\":{\"type\":[\"string\",\"null\"]},\"filesPersist\":{\"type\":\"boolean\"}},"
        "\"required\":[\"container_id\",\"url\",\"filesPersist\"]}",
    .hints = {.open_world = true},
    .call = call,
};
