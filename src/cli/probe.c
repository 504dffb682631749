#include "cli/probe.h"

#include <event2/event.h>
#include <signal.h>

#include "loop/later.h"
#include "sandbox/attach.h"
#include "sandbox/sandbox.h"

enum { TEXT_MAX = 1 << 16, TIMEOUT_MS = 10000 };

struct probing {
    struct event_base *base;
    struct sandbox    *sandbox;
    struct run        *run;
    struct probe      *probe;
    struct later       later;
    struct err         lost;       /* why the sandbox ended by itself */
    struct err         unattached; /* why there is no layer */
    bool               run_done, sandbox_done;
};

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct probing *s = owner;
    struct buf     *text = &s->probe->text;
    size_t          room = TEXT_MAX - 1 - text->size;

    if (stream == STREAM_OUT)
        buf_add(text, bytes, size < room ? size : room);
    process_consumed(run_process(s->run), stream, size);
}

static void on_stdin_room(void *owner)
{
    (void)owner;
}

static void on_run_done(void *owner, const struct run_result *r)
{
    struct probing *s = owner;

    s->run_done = true;
    s->probe->result = *r;
    if (!s->sandbox_done)
        sandbox_stop(s->sandbox);
    later_ask(&s->later);
}

static void on_attached(void *owner, const struct err *e)
{
    struct probing *s = owner;

    s->run_done = true;
    s->unattached = *e;
    if (!s->sandbox_done)
        sandbox_stop(s->sandbox);
    later_ask(&s->later);
}

static void on_sandbox_done(void *owner, const struct err *e)
{
    struct probing *s = owner;

    s->sandbox_done = true;
    s->lost = *e;
    later_ask(&s->later);
}

static void on_walls(void *owner, const json_t *list)
{
    struct probing *s = owner;

    s->probe->walls = json_incref((json_t *)list);
}

static void step(void *owner)
{
    struct probing *s = owner;

    if (s->run_done && s->sandbox_done)
        event_base_loopbreak(s->base);
}

static const struct run_ops     run_ops = {on_output, on_stdin_room, on_run_done};
static const struct sandbox_ops sandbox_ops = {on_sandbox_done, on_walls};

static int run(struct probing *s, const struct engine *engine, const json_t *plan,
               const struct run_spec *spec, struct err *e)
{
    s->sandbox = sandbox_start(s->base, engine, plan, NULL, &sandbox_ops, s, e);
    if (!s->sandbox)
        return -1;
    s->run = run_start(s->sandbox, spec, &run_ops, s);
    event_base_dispatch(s->base);
    if (s->lost.kind || s->probe->result.err.kind) {
        *e = s->lost.kind ? s->lost : s->probe->result.err;
        return -1;
    }
    return 0;
}

int probe_run(const struct engine_spec *spec, const char *const *argv, struct probe *ret,
              struct err *e)
{
    autojson json_t *plan = spec->engine->plan(spec, e);
    struct probing   s = {.probe = ret, .base = event_base_new()};
    struct run_spec  what = {.argv = (const char **)argv,
                             .env = (const char **)spec->engine->environment(spec),
                             .cwd = "/",
                             .timeout_ms = TIMEOUT_MS};
    int              r = -1;

    *ret = (struct probe){0};
    buf_init(&ret->text, TEXT_MAX);
    signal(SIGPIPE, SIG_IGN);
    if (plan && s.base) {
        later_init(&s.later, s.base, step, &s);
        r = run(&s, spec->engine, plan, &what, e);
        later_done(&s.later);
    }
    if (s.base)
        event_base_free(s.base);
    return r;
}

static int attach(struct probing *s, const struct engine *engine, const json_t *plan,
                  const char *layer_dir, struct err *e)
{
    s->sandbox = sandbox_start(s->base, engine, plan, NULL, &sandbox_ops, s, e);
    if (!s->sandbox)
        return -1;
    sandbox_attach(s->sandbox, layer_dir, on_attached, s);
    event_base_dispatch(s->base);
    if (s->lost.kind || s->unattached.kind) {
        *e = s->lost.kind ? s->lost : s->unattached;
        return -1;
    }
    return 0;
}

int probe_attach(const struct engine_spec *spec, const char *layer_dir, struct err *e)
{
    autojson json_t *plan = spec->engine->plan(spec, e);
    struct probe     p = {0};
    struct probing   s = {.probe = &p, .base = event_base_new()};
    int              r = -1;

    signal(SIGPIPE, SIG_IGN);
    if (plan && s.base) {
        later_init(&s.later, s.base, step, &s);
        r = attach(&s, spec->engine, plan, layer_dir, e);
        later_done(&s.later);
    }
    if (s.base)
        event_base_free(s.base);
    json_decref(p.walls);
    return r;
}

void probe_done(struct probe *p)
{
    buf_done(&p->text);
    json_decref(p->walls);
}
