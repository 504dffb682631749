/* Theory of operation. As cli/session.c, without input: the loop runs until the program has ended
 * and its sandbox is gone. Output is kept by its end, since that is where builds say what went
 * wrong. A directory of the host has no quota that every file system knows, so it is measured each
 * second: what a package can write beyond its limit is what a disk takes in a second. */
#include "deps/cell.h"

#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/tree.h"
#include "loop/deadline.h"
#include "sandbox/sandbox.h"

enum { LOOK_MS = 1000, LINE_BYTES = 400 };

struct cell {
    struct event_base      *base;
    const struct cell_spec *spec;
    struct cell_result     *result;
    struct sandbox         *sandbox;
    struct run             *run;
    struct deadline         look;
    char                    line[LINE_BYTES]; /* on its way to stderr */
    size_t                  line_size;
    bool                    run_done, sandbox_done;
};

/* ---- output ---- */

static void tell_line(struct cell *c)
{
    if (c->line_size > 0)
        dprintf(2, "%.*s\n", (int)c->line_size, c->line);
    c->line_size = 0;
}

static void tell(struct cell *c, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == '\n' || bytes[i] == '\r')
            tell_line(c);
        else if (c->line_size < sizeof c->line)
            c->line[c->line_size++] = (char)(iscntrl(bytes[i]) ? ' ' : bytes[i]);
}

static void keep(struct buf *output, const uint8_t *bytes, size_t size)
{
    if (size > CELL_OUTPUT_MAX) {
        bytes += size - CELL_OUTPUT_MAX;
        size = CELL_OUTPUT_MAX;
    }
    if (output->size + size > CELL_OUTPUT_MAX)
        buf_drop(output, output->size + size - CELL_OUTPUT_MAX);
    buf_add(output, bytes, size);
}

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct cell *c = owner;

    tell(c, bytes, size);
    keep(&c->result->output, bytes, size);
    process_consumed(run_process(c->run), stream, size);
}

/* ---- the end ---- */

static void end_when_done(struct cell *c)
{
    if (c->run_done && c->sandbox_done)
        event_base_loopbreak(c->base);
}

static void on_stdin_room(void *owner)
{
    (void)owner;
}

static void on_run_done(void *owner, const struct run_result *r)
{
    struct cell *c = owner;

    c->run = NULL;
    c->run_done = true;
    c->result->run = *r;
    if (!c->sandbox_done && sandbox_egress(c->sandbox))
        c->result->refused = egress_take_refused(sandbox_egress(c->sandbox));
    if (!c->sandbox_done)
        sandbox_stop(c->sandbox);
    end_when_done(c);
}

static void on_sandbox_done(void *owner, const struct err *e)
{
    struct cell *c = owner;

    c->sandbox_done = true;
    if (e->kind)
        c->result->run.err = *e;
    end_when_done(c);
}

/* Files come and go meanwhile. What cannot be measured otherwise is too much: nobody needs trees
 * that deep, or directories that its owner may not read. */
static void on_look(void *owner)
{
    struct cell *c = owner;
    struct err   e = {0};
    int64_t      bytes = 0;

    if ((tree_size(c->spec->grown_fd, &bytes, &e) < 0 && e.sys != ENOENT) ||
        bytes > c->spec->grown_max) {
        c->result->outgrown = true;
        if (c->run)
            run_end(c->run, VERDICT_CANCELLED);
        return;
    }
    deadline_set(&c->look, LOOK_MS);
}

static const struct run_ops     run_ops = {on_output, on_stdin_room, on_run_done};
static const struct sandbox_ops sandbox_ops = {on_sandbox_done, NULL};

static void turn(struct cell *c)
{
    deadline_init(&c->look, c->base, on_look, c);
    if (c->spec->grown_fd >= 0)
        deadline_set(&c->look, LOOK_MS);
    c->run = run_start(c->sandbox, &c->spec->run, &run_ops, c);
    event_base_dispatch(c->base);
    tell_line(c);
    deadline_done(&c->look);
}

int cell_run(const struct cell_spec *spec, struct cell_result *ret, struct err *e)
{
    autojson json_t   *plan = spec->sandbox.engine->plan(&spec->sandbox, e);
    struct cell        c = {.base = event_base_new(), .spec = spec, .result = ret};
    struct egress_spec network = {.operator_policy = spec->policy};

    if (!plan || !c.base)
        return c.base ? -1 : err_set(e, ERR_INTERNAL, "no event loop");
    *ret = (struct cell_result){0};
    buf_init(&ret->output, CELL_OUTPUT_MAX + 1);
    network.resolver = resolver_new(c.base, NULL);
    c.sandbox = sandbox_start(c.base, spec->sandbox.engine, plan, &network, &sandbox_ops, &c, e);
    if (c.sandbox)
        turn(&c);
    else
        cell_result_done(ret);
    resolver_free(network.resolver);
    event_base_free(c.base);
    return c.sandbox ? 0 : -1;
}

void cell_result_done(struct cell_result *r)
{
    buf_done(&r->output);
    json_decref(r->refused);
}
