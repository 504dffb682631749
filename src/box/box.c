/* Theory of operation. A box goes through states in one direction: its runtime is awaited, its
 * sandbox starts, it is ready, it ends. Callbacks record what happened and ask for the step, and
 * only the step moves it on, calls the first in line, and frees it: when the sandbox is gone, which
 * means that nothing of it is left on the machine.
 *
 * While nobody has his turn, the Node of the next run is started and held (sandbox/held.h), until
 * the box has been unused for long. One that was made ahead is the same with nobody who owns it.
 *
 * It may be lost in the moment in which it is handed out. As long as nothing has run in it nobody
 * can tell one sandbox from another: so the box starts a second one, once, and who has his turn
 * begins again. */
#include "box/box.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/str.h"
#include "box/box_private.h"
#include "box/box_trail.h"
#include "engine/native.h"
#include "store/image.h"

enum {
    NEWS_MS = 1000,
    HELD_FAILURES_MAX = 3, /* in a row: code that is left in the box does not let it live */
    ENDING_MAX = 64,       /* being torn down at once, on the whole: then new ones wait */
};

const char box_script[] = "/workspace/index.js";

static void tell_changed(const struct box *b)
{
    if (b->all->ops->changed && !b->one_call && b->is_somebodys)
        b->all->ops->changed(b->all->owner, b->owner);
}

static void leave_line(struct box *b, struct turn *t)
{
    struct turn **at;

    for (at = &b->line; *at != t; at = &(*at)->next)
        assert(*at);
    *at = t->next;
}

static void lose(struct box *b, struct turn *t)
{
    struct err lost = b->err;

    if (!lost.kind)
        err_set(&lost, ERR_UNAVAILABLE, "sandbox %s was stopped", b->id);
    leave_line(b, t);
    t->box = NULL;
    t->ops->lost(t->owner, &lost);
}

static void lose_line(struct box *b)
{
    while (b->line)
        lose(b, b->line);
}

/* Whose turn has not come. */
static void lose_who_waits(struct box *b)
{
    struct turn *t;

    while ((t = b->line && b->line->is_on ? b->line->next : b->line))
        lose(b, t);
}

/* ---- the sandbox ---- */

static void on_ready(void *owner)
{
    struct box *b = owner;

    b->ready = true;
    later_ask(&b->later);
}

/* All sandboxes of a server stand behind the same walls: said once. */
static void on_walls(void *owner, const json_t *list)
{
    struct box *b = owner;

    json_decref(b->walls);
    b->walls = json_incref((json_t *)list);
    if (!b->all->told_walls && b->all->ops->walls)
        b->all->ops->walls(b->all->owner, list);
    b->all->told_walls = true;
}

static bool may_start_again(const struct box *b)
{
    return b->made_ahead && !b->tried_again && !b->shelf && !b->stop_wanted && !b->err.kind &&
           b->ports.n == 0 && b->state != BOX_ENDING;
}

static void lose_first(struct box *b, const struct err *e)
{
    struct turn *t = b->line;

    if (!t || !t->is_on)
        return;
    t->again = true;
    t->ops->lost(t->owner, e);
}

/* Nobody waits until it is cleaned up: who has his turn was told by what he has in it. A second
 * sandbox may fare better; but not after who asked has waited for as long as one may take. */
static void on_failed(void *owner, const struct err *e)
{
    struct box *b = owner;

    if (may_start_again(b) && !sandbox_has_run(b->sandbox) && e->kind != ERR_TIMEOUT)
        return;
    if (!b->err.kind)
        b->err = *e;
    lose_who_waits(b);
    later_ask(&b->later);
}

/* Who has his turn uses the sandbox, so he hears of it now: his own step may come before ours. */
static void on_gone(void *owner, const struct err *e)
{
    struct box *b = owner;

    b->again = may_start_again(b) && e->kind && !sandbox_has_run(b->sandbox);
    b->sandbox = NULL;
    twin_free(b->twin);
    b->twin = NULL;
    later_ask(&b->later);
    if (b->again) {
        lose_first(b, e);
        return;
    }
    if (!b->err.kind)
        b->err = *e;
    b->gone = true;
    lose_line(b);
}

static const struct sandbox_ops sandbox_ops = {on_gone, on_walls, on_ready, on_failed};

static int start_sandbox(struct box *b, struct err *e)
{
    struct egress_spec network = b->all->spec.network;
    bool               host_network = b->all->spec.host_network && !b->policy;
    autojson json_t   *plan = NULL;

    network.watch = telling_watch(&b->telling);
    network.policy = b->policy;
    if (b->all->spec.host_network) /* what decides nothing cannot be asked */
        network.operator_policy = b->policy;
    plan = boxes_plan(b->all, b->engine, b->runtime.dir, b->files_dir, host_network, e);
    if (!plan)
        return -1;
    if (b->shelf)
        engine_fingerprint(plan, b->fingerprint);
    b->sandbox = sandbox_start(b->all->spec.base, b->engine, plan, host_network ? NULL : &network,
                               &sandbox_ops, b, e);
    if (b->sandbox && engine_entry(plan, "twin"))
        b->twin = twin_new(b->sandbox, b->all->spec.limits.disk_bytes);
    return b->sandbox ? 0 : -1;
}

static void on_runtime(void *owner, const struct runtime *runtime, const struct err *e)
{
    struct box *b = owner;

    b->wait = NULL;
    if (e->kind) {
        b->err = *e;
        if (*b->all->spec.why_not_native && image_parse(b->image, &(struct image){0}, NULL) == 0)
            err_set(&b->err, e->kind, "%s; native cannot work here: %s", e->msg,
                    b->all->spec.why_not_native);
    } else {
        b->runtime = *runtime;
        if (b->engine == &native) /* what daemons have they keep themselves */
            b->runtime_fd = runtime_hold(runtime, &b->err);
    }
    later_ask(&b->later);
}

/* ---- the Node of its next run ---- */

static void drop_held(struct box *b)
{
    held_free(b->held);
    b->held = NULL;
}

static void on_held_gone(void *owner)
{
    struct box *b = owner;

    b->held = NULL;
    b->held_failures++;
    later_ask(&b->later);
}

void box_rest(struct box *b)
{
    drop_held(b);
    b->rests = true;
}

static void on_hold(void *owner)
{
    box_rest(owner);
}

static void hold(struct box *b)
{
    struct held_boot boot = {box_env(b), box_script};

    if (b->held || b->rests || b->all->is_short || b->held_failures >= HELD_FAILURES_MAX ||
        b->all->spec.hold_ms == 0)
        return;
    b->held = held_start(b->sandbox, &boot, on_held_gone, b);
    if (!b->held)
        b->held_failures++;
}

/* Nobody has his turn: what the next one will need. */
static void prepare(struct box *b)
{
    hold(b);
    if (!b->shelf) /* for a command; who is made ahead will mostly run a script */
        sandbox_make_group_ahead(b->sandbox);
}

struct held *box_take_held(struct box *b)
{
    struct held *held = b->held;

    b->held = NULL;
    return held;
}

/* ---- the step ---- */

static void box_free(struct box *b)
{
    box_tell_stopped(b);
    boxes_forget(b);
    drop_held(b);
    if (b->free_data)
        b->free_data(b->data);
    layer_release(&b->layer);
    fd_close(&b->runtime_fd);
    deadline_done(&b->age);
    deadline_done(&b->idle);
    deadline_done(&b->hold);
    deadline_done(&b->news);
    later_done(&b->later);
    json_decref(b->walls);
    free(b->owner);
    free(b->files_dir);
    free(b->image);
    free(b);
}

static void begin_end(struct box *b)
{
    if (b->shelf)
        boxes_spare_ended(b);
    else
        boxes_leave(b->all);
    b->state = BOX_ENDING;
    b->all->ending++;
    deadline_clear(&b->age);
    deadline_clear(&b->idle);
    deadline_clear(&b->hold);
    deadline_clear(&b->news);
    drop_held(b);
    ports_close(&b->ports, &b->all->ports);
    if (b->wait)
        runtime_wait_cancel(b->wait);
    b->wait = NULL;
    if (b->sandbox)
        sandbox_stop(b->sandbox);
    else
        b->gone = true;
    tell_changed(b);
}

static void begin_sandbox(struct box *b)
{
    b->state = BOX_STARTING;
    deadline_clear(&b->news);
    if (*b->runtime.note && b->all->ops->note)
        b->all->ops->note(b->all->owner, b->runtime.note);
    start_sandbox(b, &b->err);
}

static void start_again(struct box *b)
{
    box_note(b, "a sandbox that was made ahead is lost as it is handed out; another is started");
    b->again = b->ready = false;
    b->tried_again = true;
    layer_release(&b->layer); /* nothing ran with it, so nobody counts on it */
    b->state = BOX_FETCHING;  /* its Node is here */
}

void box_begin_life(struct box *b)
{
    if (b->all->spec.age_ms > 0)
        deadline_set(&b->age, b->all->spec.age_ms);
    tell_changed(b);
}

static void be_ready(struct box *b)
{
    b->state = BOX_READY;
    if (b->shelf) {
        boxes_spare_ready(b);
    } else {
        boxes_cold_ready(b->all);
        box_begin_life(b);
    }
}

static void rest(struct box *b)
{
    if (b->all->spec.idle_ms > 0)
        deadline_set(&b->idle, b->all->spec.idle_ms);
    if (b->all->spec.hold_ms > 0)
        deadline_set(&b->hold, b->all->spec.hold_ms);
}

static void call_first(struct box *b)
{
    struct turn *t = b->line;

    if (t && !t->is_on) {
        t->is_on = true;
        b->rests = false;
        b->held_failures = 0;
        deadline_clear(&b->idle);
        deadline_clear(&b->hold);
        t->ops->go(t->owner);
    } else if (!t && !b->shelf) {
        rest(b);
    }
}

static void step(void *owner)
{
    struct box *b = owner;

    if (b->again)
        start_again(b);
    if (b->state == BOX_FETCHING && !b->wait && !b->err.kind && !b->stop_wanted &&
        b->all->ending < ENDING_MAX)
        begin_sandbox(b);
    if (b->state == BOX_STARTING && b->ready)
        be_ready(b);
    if ((b->stop_wanted || b->err.kind || b->gone) && b->state != BOX_ENDING)
        begin_end(b);
    if (b->state == BOX_READY && sandbox_is_well(b->sandbox)) /* else its end is on its way */
        call_first(b);
    if (b->state == BOX_READY && sandbox_is_well(b->sandbox) && !b->line)
        prepare(b);
    if (b->state == BOX_ENDING && b->gone) {
        lose_line(b);
        box_free(b);
    }
}

/* ---- ends ---- */

static void on_age(void *owner)
{
    struct box *b = owner;

    err_set(&b->err, ERR_TIMEOUT, "the sandbox reached its age of %g s",
            (double)b->all->spec.age_ms / 1000);
    if (b->sandbox)
        sandbox_fail(b->sandbox, b->err.kind, b->err.msg); /* what runs in it is told why */
    later_ask(&b->later);
}

static void on_news(void *owner)
{
    struct box    *b = owner;
    long long      seconds = (long long)(clock_ms() - b->made_ms) / 1000;
    autofree char *sentence =
        b->engine == &native
            ? str_format("fetching Node.js for %s, %lld s", b->image, seconds)
            : str_format("%s gets the image %s, %lld s", b->engine->name, b->image, seconds);

    for (struct turn *t = b->line; t; t = t->next)
        if (t->ops->waits)
            t->ops->waits(t->owner, sentence);
    deadline_set(&b->news, NEWS_MS);
}

static void on_idle(void *owner)
{
    box_stop(owner, "idle");
}

void box_stop(struct box *b, const char *why)
{
    if (!b->stop_wanted)
        b->why = why;
    b->stop_wanted = true;
    later_ask(&b->later);
}

/* ---- its line ---- */

void turn_start(struct turn *t, struct box *b, const char *call, const struct turn_ops *ops,
                void *owner)
{
    struct turn **at = &b->line;

    *t = (struct turn){.box = b, .ops = ops, .owner = owner, .call = call};
    while (*at)
        at = &(*at)->next;
    *at = t;
    later_ask(&b->later);
}

void turn_go_first(struct turn *t)
{
    struct turn **at = &t->box->line;

    leave_line(t->box, t);
    if (*at && (*at)->is_on)
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

void turn_end(struct turn *t)
{
    if (!t->box)
        return;
    leave_line(t->box, t);
    later_ask(&t->box->later);
    t->box = NULL;
}

bool turn_is_for_naught(const struct turn *t)
{
    const struct box *b = t->box;

    return b && (t->again || (may_start_again(b) && b->sandbox && !sandbox_is_well(b->sandbox) &&
                              !sandbox_has_run(b->sandbox)));
}

/* ---- the beginning ---- */

/* 122 random bits in the form of a UUID, version 4. */
static void make_id(char ret[BOX_ID_MAX])
{
    char hex[33];

    random_id(hex);
    hex[12] = '4';
    hex[16] = "89ab"[str_hex_digit(hex[16]) & 3];
    snprintf(ret, BOX_ID_MAX, "js-sbx-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}

static struct trail_subject subject_of(const void *owner)
{
    return box_subject(owner);
}

struct box *box_new(struct boxes *all, const struct box_spec *spec, struct shelf *shelf)
{
    struct box *b = calloc(1, sizeof *b);

    if (!b)
        abort();
    *b = (struct box){.all = all,
                      .shelf = shelf,
                      .made_ahead = shelf != NULL,
                      .is_somebodys = shelf == NULL,
                      .owner = str_dup(spec->owner),
                      .files_dir = spec->files_dir ? str_dup(spec->files_dir) : NULL,
                      .image = str_dup(spec->image ? spec->image : all->spec.image),
                      .policy = spec->policy,
                      .one_call = spec->one_call,
                      .telling = {all->spec.trail, subject_of, b},
                      .runtime_fd = -1,
                      .layer.fd = -1};
    make_id(b->id);
    deadline_init(&b->age, all->spec.base, on_age, b);
    deadline_init(&b->idle, all->spec.base, on_idle, b);
    deadline_init(&b->hold, all->spec.base, on_hold, b);
    deadline_init(&b->news, all->spec.base, on_news, b);
    b->made_ms = clock_ms();
    later_init(&b->later, all->spec.base, step, b);
    b->engine = boxes_engine(all, b->image);
    b->wait = runtimes_get(all->runtimes, b->engine, b->image, boxes_may_pull(all, b->image),
                           on_runtime, b);
    if (runtime_wait_fetches(b->wait)) /* a daemon is asked even for what it has */
        deadline_set(&b->news, b->engine == &native ? 0 : NEWS_MS);
    return b;
}

bool box_is_well(const struct box *b)
{
    return b->state != BOX_ENDING && !b->stop_wanted && !b->err.kind && !b->gone &&
           (!b->sandbox || sandbox_is_well(b->sandbox));
}
