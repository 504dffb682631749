#include "tools/running.h"

#include <stdlib.h>

#include "box/job.h"
#include "deps/deps.h"
#include "sandbox/telling.h"
#include "tools/errors.h"
#include "tools/progress.h"
#include "tools/run_answer.h"
#include "tools/tools.h"
#include "tools/witness.h"

enum { ANSWER_MS = 10000 };

struct running {
    struct mcp_call     *call; /* NULL: cancelled, nobody waits */
    struct job          *job;
    struct job_spec      spec;
    struct layer_dep     deps[DEPENDENCIES_MAX];
    json_t              *arguments; /* a cancelled call is gone before its job is */
    bool                 stops_box;
    struct progress      progress;
    struct trail        *trail;
    struct trail_subject subject; /* the same holds for it */
};

static const struct field dependency_fields[] = {
    {"name", FIELD_STRING, offsetof(struct layer_dep, name), true, 1, 214, "package"},
    {"version", FIELD_STRING, offsetof(struct layer_dep, range), true, 1, 256, "range or tag"},
    {0},
};

static int read_dependencies(const json_t *list, struct layer_dep *ret, size_t *ret_n,
                             struct err *e)
{
    json_t *row;
    size_t  i;

    *ret_n = json_array_size(list);
    json_array_foreach ((json_t *)list, i, row) {
        TRY(fields_decode(dependency_fields, row, "dependencies", &ret[i], e));
    }
    return deps_check(ret, *ret_n, e);
}

bool running_check(struct mcp_call *c, const struct running_arguments *a)
{
    struct layer_dep deps[DEPENDENCIES_MAX] = {0};
    struct err       e = {0};
    size_t           n;

    if (read_dependencies(a->dependencies, deps, &n, &e) == 0)
        return true;
    errors_fail(c, BAD_DEPENDENCY, e.msg);
    return false;
}

bool running_check_network(struct mcp_call *c, const struct box *b,
                           const struct running_arguments *a)
{
    if (!a->network || (tools_find_policy(c, a->network) && box_has_egress(b)))
        return true;
    errors_fail(c, NETWORK, a->network);
    return false;
}

static const char call_is_over[] = "its call is over";

static void release(struct running *r)
{
    json_decref(r->arguments);
    free(r);
}

static void on_progress(void *owner, const char *sentence)
{
    struct running *r = owner;

    if (r->call)
        progress_tell(&r->progress, sentence);
}

static const struct job_ops ops;

static void on_done(void *owner, const struct job_result *result)
{
    struct running *r = owner;

    r->job = NULL;
    if (r->call && result->for_naught) {
        r->spec.again = true;
        r->job = job_start(&r->spec, &ops, r);
        return;
    }
    if (result->out && !r->spec.port) /* it ran; a server tells by itself */
        telling_run(r->trail, &r->subject, &(struct telling_program){.kind = "script"},
                    &result->run);
    if (r->stops_box && result->box)
        box_stop(result->box, call_is_over);
    if (!r->call)
        release(r);
    else
        run_answer(r->call, &r->spec, result); /* frees us with the call */
}

static const struct job_ops ops = {on_progress, on_done};

static void running_free(void *data)
{
    struct running *r = data;

    progress_done(&r->progress);
    r->call = NULL;
    if (r->job)
        job_cancel(r->job);
    else
        release(r);
}

void running_start(struct mcp_call *c, struct box *b, const struct running_arguments *a,
                   bool stops_box)
{
    struct running *r = calloc(1, sizeof *r);
    struct tools   *t = tools_of(c);
    struct share    share;
    struct err      e = {0};

    if (!r)
        abort();
    if (shares_get(t->shares, mcp_call_principal(c), &share, &e) < 0) {
        free(r);
        if (stops_box)
            box_stop(b, call_is_over);
        errors_fail(c, FILES, e.msg);
        return;
    }
    r->call = c;
    progress_init(&r->progress, box_base(b), c);
    r->arguments = json_incref((json_t *)mcp_call_arguments(c));
    r->stops_box = stops_box;
    r->trail = t->trail;
    r->subject = witness_subject(c);
    trail_set_sandbox(&r->subject, box_id(b));
    r->spec = (struct job_spec){.box = b,
                                .call = r->subject.call,
                                .layers = t->layers,
                                .files = share.files,
                                .files_quota_bytes = t->files_quota_bytes,
                                .policy = a->network ? tools_find_policy(c, a->network) : NULL,
                                .code = a->code,
                                .deps = r->deps,
                                .timeout_ms = a->timeout_ms ? a->timeout_ms : t->words.timeout_ms,
                                .port = (uint16_t)a->listen_on_port,
                                .answer_ms = a->timeout_ms ? a->timeout_ms : ANSWER_MS};
    read_dependencies(a->dependencies, r->deps, &r->spec.n_deps, &e); /* was checked */
    mcp_call_set_data(c, r, running_free);
    r->job = job_start(&r->spec, &ops, r);
}
