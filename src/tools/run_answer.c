/* Theory of operation. The facts of a job become a `struct answer` once: texts, uris. Then three
 * writers use it: the blocks of content, in the order of the contract, and the structured form. A
 * failed run differs only by the sentence in front and isError. */
#include "tools/run_answer.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/mime.h"
#include "sandbox/result.h"
#include "tools/errors.h"
#include "tools/file_uri.h"
#include "tools/tools.h"

struct answer {
    struct mcp_call         *call;
    const struct job_spec   *spec;
    const struct job_result *r;
    struct run_text          out, err;
    char                   **uris; /* of the files */
};

/* ---- one output ---- */

/* A NUL is a character, but no client shows one, and our texts end with it. */
static char *without_nul(struct keep_text *t)
{
    static const char  picture[] = "\xe2\x90\x80"; /* U+2400 */
    autobuf struct buf b;

    buf_init(&b, 3 * t->size + 1);
    if (strlen(t->text) == t->size)
        return t->text;
    for (size_t i = 0; i < t->size; i++)
        buf_add(&b, t->text[i] ? &t->text[i] : picture, t->text[i] ? 1 : strlen(picture));
    free(t->text);
    return str_dup(buf_text(&b));
}

static void add_note(struct run_text *t, size_t mended)
{
    char *text =
        str_format("%s\n[%zu bytes that are not UTF-8 are shown as U+FFFD; the exact bytes: "
                   "%s]",
                   t->text, mended, t->uri);

    free(t->text);
    t->text = text;
}

/* The notice in its middle says where the whole is, and that it takes several reads. */
static struct keep_text show_with_uri(const struct keep *k, const char *uri)
{
    autofree char *reads = NULL;

    if (keep_size(k) <= OUTPUTS_PART)
        return keep_text(k, uri);
    reads = str_format("%s, 4 MiB a read, then %s/%d", uri, uri, OUTPUTS_PART);
    return keep_text(k, reads);
}

void run_text_init(struct run_text *t, struct mcp_call *c, struct keep *k)
{
    struct keep_text shown;

    *t = (struct run_text){0};
    if (!k) {
        t->text = str_dup("");
        return;
    }
    shown = keep_text(k, NULL);
    t->bytes = keep_size(k);
    t->cut = shown.left_out > 0;
    if (t->cut || shown.mended > 0) {
        outputs_add(tools_of(c)->outputs, mcp_call_owner(c), k, t->uri);
        free(shown.text);
        shown = show_with_uri(k, t->uri);
    }
    t->text = without_nul(&shown);
    if (shown.mended > 0)
        add_note(t, shown.mended);
}

void run_text_done(struct run_text *t)
{
    free(t->text);
}

/* ---- how it ended ---- */

void run_ending(const struct run_result *r, char ret[RUN_ENDING_MAX])
{
    const char *name = r->facts.signal ? sigabbrev_np(r->facts.signal) : NULL;

    if (r->err.kind)
        snprintf(ret, RUN_ENDING_MAX, "%s (%.70s)", verdict_name(r->verdict), r->err.msg);
    else if (r->verdict == VERDICT_TIMEOUT)
        snprintf(ret, RUN_ENDING_MAX, "timeout");
    else if (r->facts.signal)
        snprintf(ret, RUN_ENDING_MAX, "signal %d (SIG%s)", r->facts.signal, name ? name : "?");
    else
        snprintf(ret, RUN_ENDING_MAX, "exit code %d", r->facts.code);
}

/* ---- what the network did not give ---- */

void run_files_note(struct mcp_call *c, const char *note)
{
    autofree char *text = str_format("Not everything reached the files directory: %s", note);

    if (*note)
        mcp_call_text(c, text);
}

void run_refused(struct mcp_call *c, const json_t *refused)
{
    autobuf struct buf text;
    json_t            *row;
    size_t             i;

    buf_init(&text, SIZE_MAX);
    if (json_array_size(refused) == 0)
        return;
    buf_printf(&text, "Refused connections:");
    json_array_foreach ((json_t *)refused, i, row) {
        const json_t *port = json_object_get(row, "port");
        buf_printf(&text, "\n- %s", json_string_value(json_object_get(row, "host")));
        if (json_is_integer(port))
            buf_printf(&text, ":%" JSON_INTEGER_FORMAT, json_integer_value(port));
        buf_printf(&text, ": %s (%s)", json_string_value(json_object_get(row, "rule")),
                   json_string_value(json_object_get(row, "allow")));
    }
    mcp_call_text(c, buf_text(&text));
}

/* ---- verdicts ---- */

static void add_disk_verdict(const struct answer *a, const struct run_result *r, const char *how)
{
    const struct tools *t = tools_of(a->call);
    char                much[WORDS_SIZE_MAX];

    words_size(r->facts.quota_exceeded ? t->files_quota_bytes : t->words.disk_bytes, much);
    if (r->facts.quota_exceeded)
        errors_text(a->call, RUN_QUOTA, much);
    else if (r->err.kind) /* not even its code had room */
        errors_text(a->call, RUN_NO_ROOM, much);
    else
        errors_text(a->call, RUN_DISK, much, how);
}

/* The sentence in front of a script that failed; nothing for one that did not. */
static void add_verdict(const struct answer *a)
{
    const struct run_result *r = &a->r->run;
    const struct tools      *t = tools_of(a->call);
    char                     how[RUN_ENDING_MAX], much[WORDS_SIZE_MAX];

    run_ending(r, how);
    switch (r->verdict) {
    case VERDICT_OK:
        break;
    case VERDICT_SANDBOX_LOST:
    case VERDICT_CANCELLED:
        errors_text(a->call, RUN_LOST, r->err.msg);
        break;
    case VERDICT_TIMEOUT:
        words_time(a->spec->timeout_ms, much);
        errors_text(a->call, RUN_TIMEOUT, much);
        break;
    case VERDICT_OUTPUT:
        words_size(KEEP_KEPT, much);
        errors_text(a->call, RUN_OUTPUT, much);
        break;
    case VERDICT_OOM:
        words_size(t->words.memory_bytes, much);
        errors_text(a->call, RUN_OOM, much, how);
        break;
    case VERDICT_PIDS:
        errors_text(a->call, RUN_PIDS, (long long)t->words.pids, how);
        break;
    case VERDICT_DISK:
        add_disk_verdict(a, r, how);
        break;
    case VERDICT_ERROR:
        errors_text(a->call, RUN_ERROR, how);
        break;
    }
}

static void add_server_verdict(const struct answer *a)
{
    const struct server_result *s = &a->r->server;
    char                        how[RUN_ENDING_MAX], much[WORDS_SIZE_MAX];

    run_ending(&s->run, how);
    if (s->died && s->run.err.kind && s->run.verdict == VERDICT_DISK) {
        add_disk_verdict(a, &s->run, how);
    } else if (s->died && s->run.verdict == VERDICT_SANDBOX_LOST) {
        errors_text(a->call, RUN_LOST, s->run.err.msg);
    } else if (s->died) {
        errors_text(a->call, SERVER_DIED, how, a->spec->port);
    } else if (!s->answered) {
        words_time(a->spec->answer_ms, much);
        errors_text(a->call, SERVER_SILENT, a->spec->port, much, s->log);
    }
}

/* ---- content ---- */

static bool is_background(const struct answer *a)
{
    return a->spec->port && !a->r->server.died;
}

static void add_output(const struct answer *a)
{
    autofree char *text = NULL;

    if (!is_background(a)) {
        text = str_format("Node.js process output:\n%s", a->out.text);
    } else {
        text = str_format("Node.js process output:\nServer started in background; logs at "
                          "/workspace/%s",
                          a->r->server.log);
    }
    mcp_call_text(a->call, text);
}

/* Only when it is not where it was asked for, or the text of the contract would not do. */
static void add_place(const struct answer *a)
{
    autofree char *text = NULL;

    if (!is_background(a) || a->r->server.host_port == a->spec->port)
        return;
    text = str_format("Port %u of the sandbox is http://127.0.0.1:%u: another sandbox has %u.",
                      a->spec->port, a->r->server.host_port, a->spec->port);
    mcp_call_text(a->call, text);
}

static void add_errors(const struct answer *a)
{
    autofree char *text = NULL;

    if (!*a->err.text)
        return;
    text = str_format("Node.js process errors:\n%s", a->err.text);
    mcp_call_text(a->call, text);
}

static void add_list(const struct answer *a)
{
    autobuf struct buf text;

    buf_init(&text, SIZE_MAX);
    if (a->r->n_files == 0)
        return;
    buf_printf(&text, "List of changed files:");
    for (size_t i = 0; i < a->r->n_files; i++)
        buf_printf(&text, "\n- %s was %s", a->r->files[i].path,
                   files_change_name(a->r->files[i].change));
    if (a->r->files_cut)
        buf_printf(&text, "\n- … and more");
    mcp_call_text(a->call, buf_text(&text));
}

static bool is_image(const struct change *f)
{
    return mime_is_image(f->mime_type);
}

static void add_link(const struct answer *a, const struct change *f, const char *uri)
{
    autojson json_t *name = json_text(f->path, strlen(f->path));

    if (mcp_call_knows_links(a->call))
        mcp_call_resource_link(a->call,
                               json_pack("{s:s, s:O, s:s, s:I}", "uri", uri, "name", name,
                                         "mimeType", f->mime_type, "size", (json_int_t)f->size));
    else
        mcp_call_resource(a->call, json_pack("{s:s, s:s, s:O}", "uri", uri, "mimeType",
                                             "text/plain", "text", name));
}

static void add_file(const struct answer *a, const struct change *f, const char *uri)
{
    if (f->change == FILES_DELETED)
        return;
    if (f->content && is_image(f)) {
        autofree char *base64 = base64_encode(f->content, f->content_size);
        mcp_call_image(a->call, base64, f->mime_type);
    }
    if (f->content && !is_image(f))
        mcp_call_resource(a->call,
                          json_pack("{s:s, s:s, s:o}", "uri", uri, "mimeType", f->mime_type, "text",
                                    json_text((const char *)f->content, f->content_size)));
    else
        add_link(a, f, uri);
}

static void add_telemetry(const struct answer *a)
{
    const char      *said = a->r->install_skipped  ? "Skipped npm install (no dependencies)"
                            : a->r->install_output ? a->r->install_output
                                                   : "";
    autojson json_t *telemetry =
        json_pack("{s:I, s:o, s:I}", "installTimeMs", (json_int_t)a->r->install_ms, "installOutput",
                  json_text(said, strlen(said)), "runTimeMs", (json_int_t)a->r->run_ms);
    autofree char *dump = json_dumps(telemetry, JSON_INDENT(2));
    autofree char *text = str_format("Telemetry:\n%s", dump);

    mcp_call_text(a->call, text);
}

/* ---- the same as fields ---- */

static json_t *or_null(json_t *value_take, bool there)
{
    if (there)
        return value_take;
    json_decref(value_take);
    return json_null();
}

static json_t *truncated(const struct answer *a)
{
    const char *uri = a->out.cut ? a->out.uri : a->err.uri;

    return or_null(json_pack("{s:I, s:I, s:s}", "stdoutBytes", (json_int_t)a->out.bytes,
                             "stderrBytes", (json_int_t)a->err.bytes, "uri", uri),
                   a->out.cut || a->err.cut);
}

static json_t *files(const struct answer *a)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < a->r->n_files; i++) {
        const struct change *f = &a->r->files[i];
        bool                 is_there = f->change != FILES_DELETED;
        json_array_append_new(rows, json_pack("{s:o, s:s, s:o, s:o, s:o}", "path",
                                              json_text(f->path, strlen(f->path)), "change",
                                              files_change_name(f->change), "size",
                                              or_null(json_integer(f->size), is_there), "mimeType",
                                              or_null(json_string(f->mime_type), is_there), "uri",
                                              or_null(json_string(a->uris[i]), is_there)));
    }
    return rows;
}

static json_t *server(const struct answer *a)
{
    const struct server_result *s = &a->r->server;
    autofree char              *log = file_uri_in_box(a->r->box_id, s->log);

    if (!is_background(a))
        return json_null();
    return json_pack("{s:o, s:s}", "url", json_sprintf("http://127.0.0.1:%u", s->host_port), "log",
                     log);
}

static const char *verdict_of_job(const struct answer *a)
{
    if (is_background(a))
        return verdict_name(a->r->server.answered ? VERDICT_OK : VERDICT_TIMEOUT);
    if (a->spec->port && a->r->run.verdict == VERDICT_OK) /* a server that ends is none */
        return verdict_name(VERDICT_ERROR);
    return verdict_name(a->r->run.verdict);
}

static json_t *structured(const struct answer *a)
{
    const struct run_result *r = &a->r->run;
    bool                     ran = !is_background(a);

    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I}, s:{s:I, s:I, s:I}, s:o, s:o, s:{s:o}}",
        "verdict", verdict_of_job(a), "exitCode",
        or_null(json_integer(r->facts.code), ran && r->facts.code >= 0), "signal",
        or_null(json_integer(r->facts.signal), ran && r->facts.signal), "stdout",
        json_text(a->out.text, strlen(a->out.text)), "stderr",
        json_text(a->err.text, strlen(a->err.text)), "truncated", truncated(a), "files", files(a),
        "timings", "installMs", (json_int_t)a->r->install_ms, "runMs", (json_int_t)a->r->run_ms,
        "usage", "wallMs", (json_int_t)a->r->run_ms, "cpuMs", (json_int_t)(r->cpu_us / 1000),
        "peakMemoryBytes", (json_int_t)r->peak_bytes, "refused",
        a->r->refused ? json_incref(a->r->refused) : json_array(), "server", server(a), "walls",
        "missing", result_missing_walls(a->r->walls));
}

/* The schema of that. Each list gives an object's properties, and the same names again as required:
 * F its first, M the others. */
/* clang-format off */
#define FIELDS_OF_RUN(F, M)                                                                        \
    F(verdict, STRING) M(exitCode, MAYBE_INTEGER) M(signal, MAYBE_INTEGER)                         \
    M(stdout, STRING) M(stderr, STRING) M(truncated, MAYBE_GROUP(FIELDS_OF_TRUNCATED))             \
    M(files, LIST(GROUP(FIELDS_OF_FILE))) M(timings, GROUP(FIELDS_OF_TIMINGS))                     \
    M(usage, GROUP(FIELDS_OF_USAGE)) M(refused, LIST(GROUP(FIELDS_OF_REFUSED)))                    \
    M(server, MAYBE_GROUP(FIELDS_OF_SERVER)) M(walls, GROUP(FIELDS_OF_WALLS))
#define FIELDS_OF_TRUNCATED(F, M) F(stdoutBytes, INTEGER) M(stderrBytes, INTEGER) M(uri, STRING)
#define FIELDS_OF_FILE(F, M)                                                                       \
    F(path, STRING) M(change, STRING) M(size, MAYBE_INTEGER) M(mimeType, MAYBE_STRING)             \
    M(uri, MAYBE_STRING)
#define FIELDS_OF_TIMINGS(F, M) F(installMs, INTEGER) M(runMs, INTEGER)
#define FIELDS_OF_USAGE(F, M) F(wallMs, INTEGER) M(cpuMs, INTEGER) M(peakMemoryBytes, INTEGER)
#define FIELDS_OF_REFUSED(F, M)                                                                    \
    F(host, STRING) M(port, MAYBE_INTEGER) M(rule, STRING) M(allow, STRING)
#define FIELDS_OF_SERVER(F, M) F(url, STRING) M(log, STRING)
#define FIELDS_OF_WALLS(F, M) F(missing, LIST(STRING))
/* clang-format on */

#define STRING "{\"type\":\"string\"}"
#define INTEGER "{\"type\":\"integer\"}"
#define MAYBE_INTEGER "{\"type\":[\"integer\",\"null\"]}"
#define MAYBE_STRING "{\"type\":[\"string\",\"null\"]}"
#define LIST(items) "{\"type\":\"array\",\"items\":" items "}"
#define NAME(name, schema) "\"" #name "\""
#define MORE_NAME(name, schema) ",\"" #name "\""
#define PROPERTY(name, schema) "\"" #name "\":" schema
#define MORE_PROPERTY(name, schema) ",\"" #name "\":" schema
#define OBJECT(type, properties, names)                                                            \
    "{\"type\":" type ",\"properties\":{" properties "},\"required\":[" names "]}"
#define GROUP(fields) OBJECT("\"object\"", fields(PROPERTY, MORE_PROPERTY), fields(NAME, MORE_NAME))
#define MAYBE_GROUP(fields)                                                                        \
    OBJECT("[\"object\",\"null\"]", fields(PROPERTY, MORE_PROPERTY), fields(NAME, MORE_NAME))

/* The outer object has names of its own: cppcheck expands no macro inside of itself. */
#define TOP_PROPERTY(name, schema) "\"" #name "\":" schema
#define TOP_MORE(name, schema) ",\"" #name "\":" schema
const char run_answer_schema[] =
    OBJECT("\"object\"", FIELDS_OF_RUN(TOP_PROPERTY, TOP_MORE), FIELDS_OF_RUN(NAME, MORE_NAME));

/* ---- all of it ---- */

static void answer_init(struct answer *a)
{
    run_text_init(&a->out, a->call, a->r->out);
    run_text_init(&a->err, a->call, a->r->err_out);
    a->uris = calloc(a->r->n_files + 1, sizeof *a->uris);
    if (!a->uris)
        abort();
    for (size_t i = 0; i < a->r->n_files; i++)
        a->uris[i] = file_uri_of(a->r->files_dir, a->r->box_id, a->r->files[i].path);
}

static void answer_done(struct answer *a)
{
    for (size_t i = 0; i < a->r->n_files; i++)
        free(a->uris[i]);
    free(a->uris);
    run_text_done(&a->out);
    run_text_done(&a->err);
}

static void tell_why_not_run(struct mcp_call *c, const struct job_result *r)
{
    if (r->files_failed)
        errors_fail(c, FILES, r->err.msg);
    else if (r->install_failed)
        errors_fail(c, INSTALL, r->err.msg);
    else if (r->server.unpublished)
        errors_fail(c, PORT, r->err.msg);
    else if (r->no_runtime)
        errors_fail(c, NO_RUNTIME, r->err.msg);
    else if (r->never_started)
        errors_fail(c, CANNOT_START, r->err.msg);
    else
        errors_fail(c, STOPPED, r->err.msg);
}

void run_answer(struct mcp_call *c, const struct job_spec *spec, const struct job_result *r)
{
    struct answer a = {.call = c, .spec = spec, .r = r};

    if (r->err.kind) {
        tell_why_not_run(c, r);
        return;
    }
    answer_init(&a);
    if (spec->port)
        add_server_verdict(&a);
    else
        add_verdict(&a);
    add_output(&a);
    add_place(&a);
    add_errors(&a);
    add_list(&a);
    for (size_t i = 0; i < r->n_files; i++)
        add_file(&a, &r->files[i], a.uris[i]);
    run_files_note(c, r->files_note);
    run_refused(c, r->refused);
    add_telemetry(&a);
    mcp_call_structured(c, structured(&a));
    answer_done(&a);
    mcp_call_done(c);
}
