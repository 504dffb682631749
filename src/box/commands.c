/* Theory of operation. One record after the other, each to its end: what a command left running is
 * gone before the next one begins. When the last one exits with 0 and has said all, nothing can
 * change the answer any more, so it is given; the turn is kept until its group has ended, too. */
#include "box/commands.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "box/box_trail.h"
#include "engine/layout.h"
#include "loop/later.h"

enum commands_state { COMMANDS_TURN, COMMANDS_SEND, COMMANDS_RUN, COMMANDS_FETCH };

struct commands {
    const struct commands_spec *spec;
    const struct commands_ops  *ops;
    void                       *owner;
    enum commands_state         state;
    bool                        waiting, cancelled;
    bool                        succeeded; /* a fact: the one that runs */
    bool                        told;      /* done was called: nothing of the caller's is left */
    struct turn                 turn;
    struct record              *record; /* the one that runs */
    struct run_spec             run;    /* of it */
    const char                 *argv[4];
    int64_t                     began_ms;
    struct later                later;
    struct commands_result      result;
    struct trail               *trail;
    struct trail_subject        subject; /* the last one's end is told when the caller is gone */
};

/* ---- facts ---- */

static void on_turn(void *owner)
{
    struct commands *c = owner;

    c->waiting = false;
    c->began_ms = clock_ms();
    later_ask(&c->later);
}

static void on_lost(void *owner, const struct err *e)
{
    struct commands *c = owner;

    c->result.err = *e;
    if (c->state == COMMANDS_TURN)
        c->waiting = false;
    later_ask(&c->later);
}

static void on_line(void *owner, const char *line)
{
    struct commands *c = owner;

    c->ops->line(c->owner, line);
}

static void on_ended(void *owner, const struct run_result *r, struct keep *out, struct keep *err)
{
    struct commands *c = owner;

    c->result.ended[c->result.n++] = (struct command_result){*r, out, err};
    if (!turn_is_for_naught(&c->turn))
        telling_run(c->trail, &c->subject,
                    &(struct telling_program){.kind = "command", .number = c->result.n}, r);
    c->record = NULL;
    c->waiting = false;
    later_ask(&c->later);
}

static void on_succeeded(void *owner, struct keep *out, struct keep *err)
{
    struct commands *c = owner;

    /* Its place; what stands there then is what on_ended brings. */
    c->result.ended[c->result.n] =
        (struct command_result){(struct run_result){.verdict = VERDICT_OK}, out, err};
    c->succeeded = true;
    later_ask(&c->later);
}

static void on_sent(void *owner, const struct err *e)
{
    struct commands *c = owner;

    if (e->kind && !c->result.err.kind && !c->cancelled) {
        c->result.err = *e;
        c->result.files_failed = c->turn.box && box_is_usable(c->turn.box);
    }
    c->waiting = false;
    later_ask(&c->later);
}

static void on_fetched(void *owner, const struct err *e)
{
    struct commands *c = owner;

    snprintf(c->result.files_note, sizeof c->result.files_note, "%s", e->msg);
    c->waiting = false;
    later_ask(&c->later);
}

static const struct record_ops record_ops = {on_line, on_ended, on_succeeded};
static const struct turn_ops   turn_ops = {on_turn, on_lost, NULL};

/* ---- the step ---- */

static bool has_next(const struct commands *c)
{
    size_t n = c->result.n;

    return !c->cancelled && c->spec->list[n] &&
           (n == 0 || c->result.ended[n - 1].run.verdict == VERDICT_OK);
}

/* The box ended between two of them: then it is the next one that failed. */
static void lose_next(struct commands *c)
{
    struct run_result lost = {
        .verdict = VERDICT_SANDBOX_LOST, .facts.code = -1, .err = c->result.err};

    if (c->result.n > 0)
        c->result.ended[c->result.n++].run = lost;
}

static int64_t time_left(const struct commands *c)
{
    int64_t left = c->spec->timeout_ms - (clock_ms() - c->began_ms);

    return left > 0 ? left : 1; /* 0 would be: for ever */
}

static void run_next(struct commands *c)
{
    c->argv[0] = "/bin/sh", c->argv[1] = "-c", c->argv[2] = c->spec->list[c->result.n];
    c->run = (struct run_spec){.argv = c->argv,
                               .env = (const char **)box_env(c->spec->box),
                               .cwd = layout_workspace,
                               .timeout_ms = time_left(c)};
    c->record = record_start(box_sandbox(c->spec->box), &c->run, box_scratch_dir(c->spec->box),
                             &record_ops, c);
    c->waiting = true;
    c->succeeded = false;
}

static void collect(struct commands *c)
{
    struct sandbox *s = c->turn.box ? box_sandbox(c->turn.box) : NULL;

    if (s && sandbox_egress(s))
        c->result.refused = egress_take_refused(sandbox_egress(s));
}

/* Of the user's files, where the sandbox cannot be shown them. */
static struct twin *twin_of(const struct commands *c)
{
    return c->turn.box && c->spec->files ? box_twin(c->turn.box) : NULL;
}

static bool begin_send(struct commands *c)
{
    if (!twin_of(c) || c->cancelled)
        return false;
    twin_send(twin_of(c), c->spec->files, box_files_dir(c->turn.box), on_sent, c);
    return true;
}

static bool begin_fetch(struct commands *c)
{
    if (!twin_of(c) || c->cancelled || c->result.n == 0)
        return false;
    twin_fetch(twin_of(c), c->spec->files, box_files_dir(c->turn.box), c->spec->files_quota_bytes,
               on_fetched, c);
    return true;
}

static bool is_answered(const struct commands *c)
{
    return c->record && !twin_of(c) && c->succeeded && !c->cancelled &&
           !c->spec->list[c->result.n + 1];
}

static void tell(struct commands *c)
{
    struct commands_result all = c->result;

    c->told = true;
    collect(c);
    all.n += c->waiting; /* with the one whose counters are still to come */
    all.refused = c->result.refused;
    all.for_naught = turn_is_for_naught(&c->turn);
    c->ops->done(c->owner, &all);
}

static void finish(struct commands *c)
{
    if (!c->told)
        tell(c);
    turn_end(&c->turn);
    for (size_t i = 0; i < c->result.n; i++) {
        keep_free(c->result.ended[i].out);
        keep_free(c->result.ended[i].err);
    }
    json_decref(c->result.refused);
    free(c->result.ended);
    later_done(&c->later);
    free(c);
}

static void step(void *owner)
{
    struct commands *c = owner;

    if (!c->told && is_answered(c))
        tell(c);
    if (c->waiting)
        return;
    if (c->told) {
        finish(c);
        return;
    }
    if (c->state == COMMANDS_TURN) {
        c->state = COMMANDS_SEND;
        c->waiting = !c->result.err.kind && begin_send(c);
        if (c->waiting)
            return;
    }
    if (c->state == COMMANDS_SEND)
        c->state = COMMANDS_RUN;
    if (c->state == COMMANDS_RUN && has_next(c) && !c->result.err.kind) {
        run_next(c);
        return;
    }
    if (c->state == COMMANDS_RUN) {
        c->state = COMMANDS_FETCH;
        if (has_next(c))
            lose_next(c);
        c->waiting = begin_fetch(c);
        if (c->waiting)
            return;
    }
    finish(c);
}

/* ---- beginning and end ---- */

struct commands *commands_start(const struct commands_spec *spec, const struct commands_ops *ops,
                                void *owner)
{
    struct commands *c = calloc(1, sizeof *c);
    size_t           n = 0;

    if (!c)
        abort();
    *c = (struct commands){.spec = spec,
                           .ops = ops,
                           .owner = owner,
                           .waiting = true,
                           .trail = box_trail(spec->box),
                           .subject = spec->subject};
    trail_set_sandbox(&c->subject, box_id(spec->box));
    while (spec->list[n])
        n++;
    c->result.ended = calloc(n + 1, sizeof *c->result.ended);
    if (!c->result.ended)
        abort();
    later_init(&c->later, box_base(spec->box), step, c);
    turn_start(&c->turn, spec->box, c->subject.call, &turn_ops, c);
    if (spec->again)
        turn_go_first(&c->turn);
    return c;
}

void commands_cancel(struct commands *c)
{
    c->cancelled = true;
    if ((c->state == COMMANDS_SEND || c->state == COMMANDS_FETCH) && twin_of(c))
        twin_cancel(twin_of(c));
    if (c->record)
        record_end(c->record, VERDICT_CANCELLED);
    else if (c->state == COMMANDS_TURN)
        c->waiting = false; /* it only waited for its turn */
    later_ask(&c->later);
}
