/* Theory of operation. States in one direction; each starts one thing and waits for it. An error or
 * a cancellation skips what is left of the way to the run, a cancellation also what comes after it;
 * but what was begun in the box is waited for. A script's files are written while its box is looked
 * at: both ask init, and neither needs the other. When the box is lost everything in it tells its
 * end by itself; the job only stops asking it. */
#include "box/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "engine/layout.h"
#include "loop/later.h"
#include "sandbox/attach.h"
#include "trail/trail.h"

static const char manifest[] = "/workspace/package.json";

enum job_state {
    JOB_TURN,
    JOB_SEND,
    JOB_LAYER,
    JOB_ATTACH,
    JOB_LOOK,
    JOB_RUN,
    JOB_FETCH,
    JOB_CHANGES,
    JOB_DONE,
};

struct job {
    const struct job_spec *spec;
    const struct job_ops  *ops;
    void                  *owner;
    enum job_state         state;
    bool                   waiting, cancelled, over_quota;
    struct turn            turn;
    char                   call[TRAIL_CALL_MAX]; /* the turn outlives the spec */
    struct later           later;
    char                   box_id[BOX_ID_MAX];
    char                  *files_dir;
    struct layer_request  *request;
    struct layer_hold      layer; /* until it is in the box, which holds it then */
    char                  *install_output;
    int64_t                began_ms; /* the install, then the server */
    struct changes        *changes;
    char                  *package_json;
    struct run_file        files[2];
    struct run_spec        run;
    const char            *argv[3];
    struct record         *record;
    struct server_start   *server;
    struct job_result      result;
};

static void go_on(struct job *j)
{
    j->waiting = false;
    later_ask(&j->later);
}

static void fail(struct job *j, const struct err *e)
{
    if (!j->result.err.kind)
        j->result.err = *e;
}

static void on_line(void *owner, const char *line)
{
    struct job *j = owner;

    j->ops->progress(j->owner, line);
}

/* What only waits, and has nothing in the box that would end by itself. */
static void stop_waiting(struct job *j)
{
    if ((j->state == JOB_SEND || j->state == JOB_FETCH) && j->turn.box && box_twin(j->turn.box))
        twin_cancel(box_twin(j->turn.box));
    if (j->request)
        layer_request_cancel(j->request);
    if (j->request || j->state == JOB_TURN)
        go_on(j);
    j->request = NULL;
}

/* ---- its turn ---- */

static void on_turn(void *owner)
{
    go_on(owner);
}

static void on_lost(void *owner, const struct err *e)
{
    struct job *j = owner;

    j->result.never_started = !box_was_ready(j->spec->box);
    j->result.no_runtime = box_lacks_runtime(j->spec->box);
    if ((j->state < JOB_RUN && !j->record) || j->server)
        fail(j, e);
    if (j->changes)
        changes_lose(j->changes);
    if (j->server)
        server_start_cancel(j->server);
    stop_waiting(j);
}

static void on_waits(void *owner, const char *sentence)
{
    struct job *j = owner;

    j->ops->progress(j->owner, sentence);
}

static const struct turn_ops turn_ops = {on_turn, on_lost, on_waits};

/* ---- the user's files, where the sandbox cannot be shown them ---- */

static void on_sent(void *owner, const struct err *e)
{
    struct job *j = owner;

    j->result.files_failed = e->kind && !j->cancelled && j->turn.box && box_is_usable(j->turn.box);
    if (e->kind)
        fail(j, e);
    go_on(j);
}

static void begin_send(struct job *j)
{
    struct twin *twin = box_twin(j->spec->box);

    if (!twin || !j->spec->files)
        return;
    j->waiting = true;
    twin_send(twin, j->spec->files, j->files_dir, on_sent, j);
}

static void on_fetched(void *owner, const struct err *e)
{
    struct job *j = owner;

    snprintf(j->result.files_note, sizeof j->result.files_note, "%s", e->msg);
    go_on(j);
}

static void begin_fetch(struct job *j)
{
    struct twin *twin = j->turn.box ? box_twin(j->turn.box) : NULL;

    if (!twin || !j->spec->files)
        return;
    j->waiting = true;
    twin_fetch(twin, j->spec->files, j->files_dir, j->spec->files_quota_bytes, on_fetched, j);
}

/* ---- dependencies ---- */

static void on_layer(void *owner, const struct layer_result *r)
{
    struct job *j = owner;

    j->request = NULL;
    j->result.install_ms = clock_ms() - j->began_ms;
    j->install_output = str_dup(r->output ? r->output : "");
    if (r->err.kind) {
        fail(j, &r->err);
        j->result.install_failed = true;
    } else {
        j->layer = r->hold;
    }
    go_on(j);
}

static void begin_layer(struct job *j)
{
    struct box_installing place;
    struct err            e = {0};

    if (j->spec->policy)
        box_set_policy(j->spec->box, j->spec->policy);
    j->result.install_skipped = j->spec->n_deps == 0;
    if (j->spec->n_deps == 0)
        return;
    j->began_ms = clock_ms();
    j->ops->progress(j->owner, "installing dependencies");
    if (box_installing(j->spec->box, &place, &e) < 0) {
        fail(j, &e);
        j->result.install_failed = true;
        return;
    }
    j->waiting = true;
    j->request = layers_ensure(j->spec->layers, j->spec->deps, j->spec->n_deps, &place.node,
                               box_owner(j->spec->box), on_line, on_layer, j);
}

static void on_attached(void *owner, const struct err *e)
{
    struct job *j = owner;

    if (e->kind) {
        fail(j, e);
        j->result.install_failed = true;
    } else if (j->turn.box) {
        box_hold_layer(j->turn.box, &j->layer);
        j->layer.fd = -1;
    }
    go_on(j);
}

static void begin_attach(struct job *j)
{
    if (j->spec->n_deps == 0)
        return;
    j->waiting = true;
    sandbox_attach(box_sandbox(j->spec->box), j->layer.dir, on_attached, j);
}

/* ---- files ---- */

static void on_begun(void *owner)
{
    go_on(owner);
}

static void on_over_quota(void *owner)
{
    struct job *j = owner;

    j->over_quota = true;
    if (j->record)
        record_end(j->record, VERDICT_DISK);
}

static void on_changes(void *owner)
{
    struct job *j = owner;

    j->result.files = changes_rows(j->changes, &j->result.n_files, &j->result.files_cut);
    go_on(j);
}

static const struct changes_ops changes_ops = {on_begun, on_over_quota, on_changes};

static void begin_changes(struct job *j)
{
    if (!j->changes)
        return;
    j->waiting = true;
    changes_end(j->changes);
}

/* ---- the run ---- */

static void on_run(void *owner, const struct run_result *r, struct keep *out, struct keep *err)
{
    struct job *j = owner;

    j->record = NULL;
    j->result.run = *r;
    j->result.run_ms = r->wall_ms;
    j->result.out = out;
    j->result.err_out = err;
    if (j->state == JOB_RUN || j->cancelled) /* else its files failed, while we still look */
        go_on(j);
}

static const struct record_ops record_ops = {on_line, on_run};

static void on_server(void *owner, const struct server_result *r)
{
    struct job *j = owner;

    j->server = NULL;
    j->result.server = *r;
    j->result.server.output = NULL;
    if (r->output)
        j->result.out = keep_ref(r->output); /* of a server that died: as a script's */
    j->result.run = r->run;
    j->result.run_ms = clock_ms() - j->began_ms;
    if (r->err.kind)
        fail(j, &r->err);
    go_on(j);
}

/* What stands in package.json must be what is mounted: without dependencies both stay. */
static size_t compose_files(struct job *j)
{
    size_t n = 0;

    j->files[n++] =
        (struct run_file){box_script, (const uint8_t *)j->spec->code, strlen(j->spec->code)};
    if (j->spec->n_deps > 0) {
        j->package_json = deps_manifest(j->spec->deps, j->spec->n_deps);
        j->files[n++] =
            (struct run_file){manifest, (const uint8_t *)j->package_json, strlen(j->package_json)};
    }
    return n;
}

static void start_server(struct job *j)
{
    struct server_spec spec = {.files = j->files,
                               .n_files = compose_files(j),
                               .script = box_script,
                               .port = j->spec->port,
                               .answer_ms = j->spec->answer_ms,
                               .watch = box_twin(j->spec->box) ? NULL : j->spec->files,
                               .quota_bytes = j->spec->files_quota_bytes};

    j->ops->progress(j->owner, "starting the server");
    j->began_ms = clock_ms();
    j->server = server_start(j->spec->box, &spec, on_server, j);
}

static void record_run(struct job *j)
{
    j->ops->progress(j->owner, "running");
    j->argv[0] = layout_node;
    j->argv[1] = box_script;
    j->run = (struct run_spec){.files = j->files,
                               .n_files = compose_files(j),
                               .argv = j->argv,
                               .env = (const char **)box_env(j->spec->box),
                               .cwd = layout_workspace,
                               .timeout_ms = j->spec->timeout_ms,
                               .held = box_take_held(j->spec->box),
                               .waits = true};
    j->record = record_start(box_sandbox(j->spec->box), &j->run, box_scratch_dir(j->spec->box),
                             &record_ops, j);
    if (j->over_quota)
        record_end(j->record, VERDICT_DISK);
}

static void begin_look(struct job *j)
{
    j->waiting = true;
    j->changes =
        changes_start(box_sandbox(j->spec->box), box_twin(j->spec->box) ? NULL : j->spec->files,
                      j->spec->files_quota_bytes, &changes_ops, j);
    if (!j->spec->port)
        record_run(j);
}

static void begin_run(struct job *j)
{
    if (j->spec->port)
        start_server(j);
    else if (j->record)
        record_begin(j->record);
    j->waiting = j->record || j->server;
}

/* ---- the end ---- */

static void collect(struct job *j)
{
    struct box    *b = j->turn.box;
    struct egress *e = b && box_sandbox(b) ? sandbox_egress(box_sandbox(b)) : NULL;

    j->result.box = b;
    j->result.for_naught = turn_is_for_naught(&j->turn);
    j->result.box_id = j->box_id;
    j->result.files_dir = j->files_dir;
    j->result.install_output = j->install_output;
    j->result.walls = b ? box_walls(b) : NULL;
    if (e)
        j->result.refused = egress_take_refused(e);
}

static void finish(struct job *j)
{
    collect(j);
    j->ops->done(j->owner, &j->result);
    turn_end(&j->turn);
    if (j->changes)
        changes_free(j->changes);
    layer_release(&j->layer);
    keep_free(j->result.out);
    keep_free(j->result.err_out);
    json_decref(j->result.refused);
    free(j->install_output);
    free(j->package_json);
    free(j->files_dir);
    later_done(&j->later);
    free(j);
}

static void step(void *owner)
{
    struct job *j = owner;

    while (!j->waiting) {
        if ((j->cancelled || (j->result.err.kind && j->state < JOB_RUN)) && !j->record)
            j->state = JOB_DONE;
        switch (j->state) {
        case JOB_TURN:
            j->state = JOB_SEND;
            begin_send(j);
            break;
        case JOB_SEND:
            j->state = JOB_LAYER;
            begin_layer(j);
            break;
        case JOB_LAYER:
            j->state = JOB_ATTACH;
            begin_attach(j);
            break;
        case JOB_ATTACH:
            j->state = JOB_LOOK;
            begin_look(j);
            break;
        case JOB_LOOK:
            j->state = JOB_RUN;
            begin_run(j);
            break;
        case JOB_RUN:
            j->state = JOB_FETCH;
            begin_fetch(j);
            break;
        case JOB_FETCH:
            j->state = JOB_CHANGES;
            begin_changes(j);
            break;
        case JOB_CHANGES:
        case JOB_DONE:
            finish(j);
            return;
        }
    }
}

/* ---- beginning and end ---- */

struct job *job_start(const struct job_spec *spec, const struct job_ops *ops, void *owner)
{
    struct job *j = calloc(1, sizeof *j);

    if (!j)
        abort();
    *j = (struct job){.spec = spec, .ops = ops, .owner = owner, .waiting = true, .layer.fd = -1};
    j->result.run.facts.code = -1;
    snprintf(j->box_id, sizeof j->box_id, "%s", box_id(spec->box));
    j->files_dir = box_files_dir(spec->box) ? str_dup(box_files_dir(spec->box)) : NULL;
    later_init(&j->later, box_base(spec->box), step, j);
    snprintf(j->call, sizeof j->call, "%s", spec->call ? spec->call : "");
    turn_start(&j->turn, spec->box, j->call, &turn_ops, j);
    if (spec->again)
        turn_go_first(&j->turn);
    return j;
}

void job_cancel(struct job *j)
{
    struct err cancelled = {0};

    if (j->cancelled)
        return;
    j->cancelled = true;
    err_set(&cancelled, ERR_CANCELLED, "cancelled");
    fail(j, &cancelled);
    if (j->record)
        record_end(j->record, VERDICT_CANCELLED);
    if (j->server)
        server_start_cancel(j->server);
    stop_waiting(j);
    if (j->state == JOB_CHANGES) /* nobody reads what changed: the box and its files are let go */
        go_on(j);
}
