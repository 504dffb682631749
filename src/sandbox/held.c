/* Theory of operation. The gate is read from stdin: one byte releases it, and it puts
 * /dev/null in that place, which is what a run without a stdin has. So the pipe needs no message
 * for it, and the code that runs then finds no descriptor of ours.
 *
 * Its stdin is not ended, so that its exit tells whether it took that byte: if not, nothing of the
 * script has run (run.c). */
#include "sandbox/held.h"

#include <stdlib.h>
#include <string.h>

#include "engine/layout.h"

enum { SAID_MAX = 16 << 10 }; /* while it boots, a stream; who says more is not well */

struct held {
    struct process  *process;
    struct held_boot boot;
    struct buf       said[STREAM_COUNT];
    bool             started, let_go;
    void (*gone)(void *owner);
    void *owner;
};

static void release_memory(struct held *h)
{
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_done(&h->said[i]);
    free(h);
}

/* ---- while nobody has it ---- */

static void on_started(void *owner)
{
    struct held *h = owner;

    h->started = true;
}

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct held *h = owner;

    if (buf_add(&h->said[stream], bytes, size) < 0)
        process_kill(h->process);
}

static void on_exited(void *owner)
{
    (void)owner; /* done follows */
}

static void on_done(void *owner, const struct process_result *r)
{
    struct held *h = owner;

    (void)r; /* it ran nothing: how it ended is nobody's business */
    if (!h->let_go)
        h->gone(h->owner);
    release_memory(h);
}

static const struct process_ops held_ops = {
    .started = on_started, .output = on_output, .exited = on_exited, .done = on_done};

struct held *held_start(struct sandbox *s, const struct held_boot *boot, void (*gone)(void *owner),
                        void *owner)
{
    struct held         *h = calloc(1, sizeof *h);
    const char          *argv[] = {layout_node, "-r", layout_gate, boot->script, NULL};
    struct message_spawn m = {
        .has_stdin = true, .cwd = "/", .argv = argv, .env = (const char **)boot->env};
    struct err e = {0};

    if (!h)
        abort();
    *h = (struct held){.boot = *boot, .gone = gone, .owner = owner};
    for (int i = 0; i < STREAM_COUNT; i++)
        buf_init(&h->said[i], SAID_MAX);
    h->process = process_hold(s, &m, &held_ops, h, &e);
    if (!h->process) {
        release_memory(h);
        return NULL;
    }
    return h;
}

void held_pass(struct held *h, void (*gone)(void *owner), void *owner)
{
    h->gone = gone;
    h->owner = owner;
}

void held_free(struct held *h)
{
    if (!h)
        return;
    h->let_go = true;
    process_kill(h->process);
}

/* ---- who can have it ---- */

static bool wants_stdin(const struct held_boot *boot, const struct run_spec *spec)
{
    (void)boot;
    return spec->has_stdin;
}

static bool is_another_program(const struct held_boot *boot, const struct run_spec *spec)
{
    return strcmp(spec->argv[0], layout_node) != 0 || !spec->argv[1] || spec->argv[2] ||
           strcmp(spec->argv[1], boot->script) != 0;
}

static bool is_elsewhere(const struct held_boot *boot, const struct run_spec *spec)
{
    (void)boot;
    return strcmp(spec->cwd, layout_workspace) != 0;
}

static bool has_another_environment(const struct held_boot *boot, const struct run_spec *spec)
{
    size_t i = 0;

    while (boot->env[i] && spec->env[i] && strcmp(boot->env[i], spec->env[i]) == 0)
        i++;
    return boot->env[i] || spec->env[i];
}

static const struct {
    bool (*is_so)(const struct held_boot *boot, const struct run_spec *spec);
    const char *why;
} misfits[] = {
    {wants_stdin, "its stdin was the gate's"},
    {is_another_program, "options of Node, arguments, another main module or another program"},
    {is_elsewhere, "another working directory"},
    {has_another_environment, "C code (TZ, NODE_OPTIONS, UV_…) read its environment at the boot"},
};

const char *held_misfit(const struct held_boot *boot, const struct run_spec *spec)
{
    for (size_t i = 0; i < sizeof misfits / sizeof misfits[0]; i++)
        if (misfits[i].is_so(boot, spec))
            return misfits[i].why;
    return NULL;
}

bool held_fits(const struct held *h, const struct run_spec *spec)
{
    return process_is_live(h->process) && !held_misfit(&h->boot, spec);
}

void held_release(struct held *h, struct process **ret, const struct process_ops *ops, void *owner)
{
    *ret = h->process;
    process_write_stdin(h->process, (const uint8_t *)"g", 1); /* first: all else can wait */
    process_release(h->process, ops, owner);
    if (h->started) /* its time is counted from before, not from when we come to it */
        ops->started(owner);
    for (int i = STREAM_OUT; i <= STREAM_ERR; i++)
        if (h->said[i].size > 0)
            ops->output(owner, (uint8_t)i, h->said[i].data, h->said[i].size);
    release_memory(h);
}
