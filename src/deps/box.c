/* Theory of operation. As cli/session.c, without input: the loop runs until the program has ended
 * and its sandbox is gone. Output is kept by its end, since that is where builds say what went
 * wrong. A directory of the host has no quota that every file system knows, so it is measured each
 * second: what a package can write beyond its limit is what a disk takes in a second. */
#include "deps/box.h"

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

struct box {
    struct event_base     *base;
    const struct box_spec *spec;
    struct box_result     *result;
    struct sandbox        *sandbox;
    struct run            *run;
    struct deadline        look;
    char                   line[LINE_BYTES]; /* on its way to stderr */
    size_t                 line_size;
    bool                   run_done, sandbox_done;
};

/* ---- output ---- */

static void tell_line(struct box *b)
{
    if (b->line_size > 0)
        dprintf(2, "%.*s\n", (int)b->line_size, b->line);
    b->line_size = 0;
}

static void tell(struct box *b, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == '\n' || bytes[i] == '\r')
            tell_line(b);
        else if (b->line_size < sizeof b->line)
            b->line[b->line_size++] = (char)(iscntrl(bytes[i]) ? ' ' : bytes[i]);
}

static void keep(struct buf *output, const uint8_t *bytes, size_t size)
{
    if (size > BOX_OUTPUT_MAX) {
        bytes += size - BOX_OUTPUT_MAX;
        size = BOX_OUTPUT_MAX;
    }
    if (output->size + size > BOX_OUTPUT_MAX)
        buf_drop(output, output->size + size - BOX_OUTPUT_MAX);
    buf_add(output, bytes, size);
}

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct box *b = owner;

    tell(b, bytes, size);
    keep(&b->result->output, bytes, size);
    process_consumed(run_process(b->run), stream, size);
}

/* ---- the end ---- */

static void end_when_done(struct box *b)
{
    if (b->run_done && b->sandbox_done)
        event_base_loopbreak(b->base);
}

static void on_stdin_room(void *owner)
{
    (void)owner;
}

static void on_run_done(void *owner, const struct run_result *r)
{
    struct box *b = owner;

    b->run = NULL;
    b->run_done = true;
    b->result->run = *r;
    if (!b->sandbox_done && sandbox_egress(b->sandbox))
        b->result->refused = egress_take_refused(sandbox_egress(b->sandbox));
    if (!b->sandbox_done)
        sandbox_stop(b->sandbox);
    end_when_done(b);
}

static void on_sandbox_done(void *owner, const struct err *e)
{
    struct box *b = owner;

    b->sandbox_done = true;
    if (e->kind)
        b->result->run.err = *e;
    end_when_done(b);
}

/* Files come and go meanwhile. What cannot be measured otherwise is too much: nobody needs trees
 * that deep, or directories that its owner may not read. */
static void on_look(void *owner)
{
    struct box *b = owner;
    struct err  e = {0};
    int64_t     bytes = 0;

    if ((tree_size(b->spec->grown_fd, &bytes, &e) < 0 && e.sys != ENOENT) ||
        bytes > b->spec->grown_max) {
        b->result->outgrown = true;
        if (b->run)
            run_end(b->run, VERDICT_CANCELLED);
        return;
    }
    deadline_set(&b->look, LOOK_MS);
}

static const struct run_ops     run_ops = {on_output, on_stdin_room, on_run_done};
static const struct sandbox_ops sandbox_ops = {on_sandbox_done, NULL};

static void turn(struct box *b)
{
    deadline_init(&b->look, b->base, on_look, b);
    if (b->spec->grown_fd >= 0)
        deadline_set(&b->look, LOOK_MS);
    b->run = run_start(b->sandbox, &b->spec->run, &run_ops, b);
    event_base_dispatch(b->base);
    tell_line(b);
    deadline_done(&b->look);
}

int box_run(const struct box_spec *spec, struct box_result *ret, struct err *e)
{
    autojson json_t   *plan = native_plan(&spec->sandbox, e);
    struct box         b = {.base = event_base_new(), .spec = spec, .result = ret};
    struct egress_spec network = {.operator_policy = spec->policy};

    if (!plan || !b.base)
        return b.base ? -1 : err_set(e, ERR_INTERNAL, "no event loop");
    *ret = (struct box_result){0};
    buf_init(&ret->output, BOX_OUTPUT_MAX + 1);
    network.resolver = resolver_new(b.base, NULL);
    b.sandbox = sandbox_start(b.base, plan, &network, &sandbox_ops, &b, e);
    if (b.sandbox)
        turn(&b);
    else
        box_result_done(ret);
    resolver_free(network.resolver);
    event_base_free(b.base);
    return b.sandbox ? 0 : -1;
}

void box_result_done(struct box_result *r)
{
    buf_done(&r->output);
    json_decref(r->refused);
}
