/* sandbox_exec - shell commands in a sandbox, one after the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "box/commands.h"
#include "tools/errors.h"
#include "tools/progress.h"
#include "tools/run_answer.h"
#include "tools/tools.h"
#include "tools/witness.h"

enum { COMMANDS_MAX = 100, TIMEOUT_MS = 300000 };

struct arguments {
    const char   *container_id;
    const json_t *commands;
    int64_t       timeout_ms;
};

static const struct field fields[] = {
    {"container_id", FIELD_STRING, offsetof(struct arguments, container_id), true, 1, 128,
     TOOLS_CONTAINER_ID},
    {"commands", FIELD_LIST, offsetof(struct arguments, commands), true, 1, COMMANDS_MAX,
     "Commands in their order, each run by /bin/sh -c in /workspace: [\"ls -la files\", \"npm "
     "ls\"]. Quotes, pipes, $(…) and backticks work.",
     "{\"items\":{\"type\":\"string\",\"minLength\":1}}"},
    {"timeoutMs", FIELD_INT, offsetof(struct arguments, timeout_ms), false, 1, 3600000,
     "Limit for all commands together, in ms (300000)."},
    {0},
};

struct executing {
    struct mcp_call     *call;
    struct commands     *commands;
    struct commands_spec spec;
    json_t              *arguments; /* a cancelled call is gone before its commands are */
    const char          *list[COMMANDS_MAX + 1];
    struct progress      progress;
};

static void release(struct executing *x)
{
    json_decref(x->arguments);
    free(x);
}

/* ---- the answer ---- */

static json_t *describe(const struct command_result *r, struct mcp_call *c)
{
    struct run_text out, err;
    json_t         *row;

    run_text_init(&out, c, r->out);
    run_text_init(&err, c, r->err);
    row = json_pack("{s:s, s:s, s:o}", "stdout", out.text, "stderr", err.text, "exitCode",
                    r->run.facts.code >= 0 ? json_integer(r->run.facts.code) : json_null());
    run_text_done(&out);
    run_text_done(&err);
    return row;
}

static void add_outputs(struct mcp_call *c, const json_t *rows)
{
    autobuf struct buf joined;
    json_t            *row;
    size_t             i;

    buf_init(&joined, SIZE_MAX);
    json_array_foreach ((json_t *)rows, i, row) {
        buf_printf(&joined, "%s%s", i ? "\n" : "",
                   json_string_value(json_object_get(row, "stdout")));
    }
    mcp_call_text(c, buf_text(&joined));
}

static bool is_limit(enum verdict v)
{
    return v == VERDICT_OUTPUT || v == VERDICT_OOM || v == VERDICT_PIDS || v == VERDICT_DISK;
}

static void add_failure(struct mcp_call *c, const struct commands_result *r, const json_t *rows)
{
    const struct run_result *last = &r->ended[r->n - 1].run;
    const json_t            *row = json_array_get(rows, r->n - 1);
    char                     ending[RUN_ENDING_MAX], how[RUN_ENDING_MAX + 16];

    if (last->verdict == VERDICT_SANDBOX_LOST) {
        errors_text(c, RUN_LOST, last->err.msg);
        return;
    }
    run_ending(last, ending);
    if (is_limit(last->verdict)) /* which one, its end does not say */
        snprintf(how, sizeof how, "%s (%s)", verdict_name(last->verdict), ending);
    else
        snprintf(how, sizeof how, "%s", ending);
    errors_quote(c, json_string_value(json_object_get(row, "stderr")), COMMAND, r->n, how);
}

static const struct commands_ops ops;

static void on_done(void *owner, const struct commands_result *r)
{
    struct executing *x = owner;
    struct mcp_call  *c = x->call;
    json_t           *rows;

    x->commands = NULL;
    if (c && r->for_naught) {
        x->spec.again = true;
        x->commands = commands_start(&x->spec, &ops, x);
        return;
    }
    if (!c) { /* cancelled: nobody waits */
        release(x);
        return;
    }
    if (r->n == 0) {
        if (r->files_failed)
            errors_fail(c, FILES, r->err.msg);
        else
            errors_fail(c, STOPPED, r->err.msg);
        return;
    }
    rows = json_array();
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(rows, describe(&r->ended[i], c));
    add_outputs(c, rows);
    if (r->ended[r->n - 1].run.verdict != VERDICT_OK)
        add_failure(c, r, rows);
    run_files_note(c, r->files_note);
    run_refused(c, r->refused);
    mcp_call_structured(c, json_pack("{s:o}", "commands", rows));
    mcp_call_done(c);
}

static void on_line(void *owner, const char *line)
{
    struct executing *x = owner;

    if (x->call)
        progress_tell(&x->progress, line);
}

static const struct commands_ops ops = {on_line, on_done};

/* ---- the call ---- */

/* The call goes with its data, but the commands still have to end. */
static void executing_free(void *data)
{
    struct executing *x = data;

    progress_done(&x->progress);
    x->call = NULL;
    if (x->commands)
        commands_cancel(x->commands);
    else
        release(x);
}

static int read_commands(struct mcp_call *c, const json_t *list, const char **ret)
{
    size_t  i;
    json_t *command;

    json_array_foreach ((json_t *)list, i, command) {
        ret[i] = json_string_value(command);
        if (!ret[i] || !*ret[i] || strlen(ret[i]) != json_string_length(command)) {
            errors_fail(c, BAD_COMMAND, i + 1);
            return -1;
        }
    }
    return 0;
}

static void call(struct mcp_call *c)
{
    struct arguments  a = {.timeout_ms = TIMEOUT_MS};
    struct executing *x;
    struct box       *b;
    const char       *list[COMMANDS_MAX + 1] = {0};
    struct tools     *t = tools_of(c);
    struct share      share = {0};

    mcp_call_decode(c, &a);
    b = tools_find_box(c, a.container_id);
    if (!b || read_commands(c, a.commands, list) < 0)
        return;
    x = calloc(1, sizeof *x);
    if (!x)
        abort();
    x->call = c;
    progress_init(&x->progress, box_base(b), c);
    x->arguments = json_incref((json_t *)mcp_call_arguments(c));
    for (size_t i = 0; list[i]; i++)
        x->list[i] = list[i];
    shares_get(t->shares, mcp_call_principal(c), &share, NULL); /* commands can do without */
    x->spec = (struct commands_spec){.box = b,
                                     .subject = witness_subject(c),
                                     .list = x->list,
                                     .files = share.files,
                                     .files_quota_bytes = t->files_quota_bytes,
                                     .timeout_ms = a.timeout_ms};
    mcp_call_set_data(c, x, executing_free);
    x->commands = commands_start(&x->spec, &ops, x);
}

const struct mcp_tool tool_sandbox_exec = {
    .name = "sandbox_exec",
    .title = "Run shell commands in a sandbox",
    .description =
        "Run shell commands in a sandbox made by sandbox_initialize: look at files, use npm "
        "or git, read a server's log. For JavaScript use run_js, which installs dependencies "
        "and reports changed files. Commands run in order, after other calls on the same "
        "sandbox; changes in /workspace persist. The first that fails stops the rest: "
        "isError, the outputs so far, its exit code and stderr. What a command leaves running "
        "ends with it, and all at the time limit: start servers by run_js with listenOnPort. "
        "Returns the stdout of each, joined by newlines; beyond 48 KiB "
        "cut in the middle, the whole is a resource.",
    .fields = fields,
    .output_schema =
        "{\"type\":\"object\",\"properties\":{\"commands\":{\"type\":\"array\",\"items\":{"
        "\"type\":\"object\",\"properties\":{\"stdout\":{\"type\":\"string\"},"
        "\"stderr\":{\"type\":\"string\"},\"exitCode\":{\"type\":[\"integer\",\"null\"]}},"
        "\"required\":[\"stdout\",\"stderr\",\"exitCode\"]}}},"
        "\"required\":[\"commands\"]}",
    .hints = {.destructive = true, .open_world = true},
    .call = call,
};
