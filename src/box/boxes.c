/* Theory of operation. The table of boxes, and those made ahead: the same objects, with a shelf of
 * the pool instead of an owner. The pool says how many (pool.h); here they are made, a moment after
 * somebody has taken one, so that making the next does not hold up what he asked for.
 *
 * What was made ahead is kept, and handed out, only while it is what would be made now: both plans
 * are compared, and what they show of this machine (engine_fingerprint). When they differ (another
 * Node, other certificates, an upgrade of Jerboa, FILES_DIR replaced), all of that kind are
 * dropped. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "box/box_private.h"
#include "box/box_trail.h"
#include "box/pressure.h"
#include "box/relief.h"
#include "engine/native.h"
#include "store/container.h"
#include "store/image.h"

enum {
    FIRST_FILL_MS = 20, /* who starts us wants an answer first */
    /* The same for who takes one: a Node that boots beside a call makes it slower. Most are over
     * soon; where enough are left, there is time for those, too, that load much first. */
    FILL_MS = 40,
    FILL_LATER_MS = 300,
    TEND_MS = 10000,
    EACH_BYTES = 48 << 20, /* what a Node takes that does little */
};

/* ---- made ahead ---- */

const struct engine *boxes_engine(const struct boxes *all, const char *image)
{
    const struct engine *others = all->spec.of_others;

    return others && image_parse(image, &(struct image){0}, &(struct err){0}) < 0
               ? others
               : all->spec.of_node;
}

/* An agent that names a registry makes the daemon speak to it, past every policy: so only by the
 * operator's leave. */
bool boxes_may_pull(const struct boxes *all, const char *image)
{
    return all->spec.pulls_any || strcmp(image, all->spec.image) == 0 ||
           image_parse(image, &(struct image){0}, &(struct err){0}) == 0;
}

json_t *boxes_plan(const struct boxes *all, const struct engine *engine, const char *runtime_dir,
                   const char *files_dir, bool host_network, struct err *e)
{
    struct engine_spec spec = all->spec.limits;

    spec.engine = engine;
    spec.runtime_dir = runtime_dir;
    spec.files_dir = files_dir;
    spec.host_network = host_network;
    // cppcheck-suppress returnDanglingLifetime ; a plan does not point to what it was made of
    return spec.engine->plan(&spec, e);
}

static struct box *add(struct boxes *all, const struct box_spec *spec, struct shelf *shelf)
{
    struct box *b = box_new(all, spec, shelf);

    TAILQ_INSERT_TAIL(&all->list, b, entry);
    return b;
}

/* Only with a Node that is here: nobody asked for a download yet. Of the images of a daemon the one
 * that most will ask for is looked for, others not again and again because somebody named them. */
static void make_spare(struct boxes *all, struct shelf *s)
{
    struct box_spec spec = {.image = s->kind.image, .owner = "", .files_dir = s->kind.files_dir};
    const struct engine *engine = boxes_engine(all, s->kind.image);
    struct runtime       runtime;
    struct err           e = {0};

    bool is_looked_for = engine != &native && strcmp(s->kind.image, all->spec.image) == 0;
    if (!is_looked_for && runtimes_find(all->runtimes, engine, s->kind.image, &runtime, &e) < 0) {
        pool_failed(s, clock_ms());
        return;
    }
    pool_began(s);
    add(all, &spec, s);
}

static void stop_one(struct boxes *all, const struct shelf *s)
{
    struct box *b;

    TAILQ_FOREACH (b, &all->list, entry)
        if (b->shelf == s && box_is_well(b)) {
            box_stop(b, "not needed");
            return;
        }
}

static bool is_current(const struct box *b)
{
    char             now[SHA256_HEX_SIZE];
    struct runtime   runtime;
    struct err       e = {0};
    autojson json_t *plan = NULL;

    if (b->state == BOX_FETCHING) /* its plan is still to be made */
        return true;
    if (runtimes_find(b->all->runtimes, b->engine, b->image, &runtime, &e) == 0)
        plan =
            boxes_plan(b->all, b->engine, runtime.dir, b->files_dir, b->all->spec.host_network, &e);
    if (!plan)
        return false;
    engine_fingerprint(plan, now);
    return strcmp(now, b->fingerprint) == 0;
}

static struct box *find_spare(struct boxes *all, const struct shelf *s)
{
    struct box *b, *best = NULL;

    TAILQ_FOREACH (b, &all->list, entry)
        if (b->shelf == s && box_is_well(b) &&
            (!best || (b->state == BOX_READY && best->state != BOX_READY)))
            best = b;
    return best;
}

static void drain(struct boxes *all, const struct shelf *s)
{
    struct box *b;

    TAILQ_FOREACH (b, &all->list, entry)
        if (b->shelf == s)
            box_stop(b, "outdated");
}

/* Else they would keep memory, and the old Node, until somebody asks. */
static void drop_outdated(struct boxes *all, int64_t now_ms)
{
    struct box *b;

    if (now_ms - all->compared_ms < TEND_MS)
        return;
    all->compared_ms = now_ms;
    TAILQ_FOREACH (b, &all->list, entry)
        if (b->shelf && b == find_spare(all, b->shelf) && !is_current(b))
            drain(all, b->shelf);
}

static void tend(void *owner)
{
    struct boxes *all = owner;
    struct shelf *s;
    int64_t       now = clock_ms();

    if (all->stopped)
        return;
    pool_lower(all->pool, now);
    drop_outdated(all, now);
    while (!all->is_short && (s = pool_wanting(all->pool, now)))
        make_spare(all, s);
    s = pool_take_surplus(all->pool, now);
    if (s)
        stop_one(all, s); /* its end leads here again */
    all->fill_ms = 0;
    deadline_set(&all->tend, pool_pause_ms(all->pool, now, TEND_MS));
}

static void fill_after(struct boxes *all, int64_t ms)
{
    all->fill_ms = clock_ms() + ms;
    deadline_set(&all->tend, ms);
}

/* Who takes one does not put off what was due for another: calls that follow each other closely
 * would else find nothing for as long as they come. */
void boxes_fill_soon(struct boxes *all)
{
    if (!all->pool || all->stopped)
        return;
    int64_t now = clock_ms(), ms = pool_is_low(all->pool, now) ? FILL_MS : FILL_LATER_MS;
    if (!all->fill_ms || all->fill_ms > now + ms)
        fill_after(all, ms);
}

void boxes_spare_ready(struct box *b)
{
    pool_became_ready(b->shelf);
    b->all->told_spare_failed = false;
    boxes_fill_soon(b->all);
}

/* Its Node is there, and sandboxes start. Where Node came with this very call, no spare could be
 * made so far, and the next try would be up to a minute away. */
void boxes_cold_ready(struct boxes *all)
{
    if (!all->pool)
        return;
    pool_works(all->pool);
    boxes_fill_soon(all);
}

void boxes_spare_ended(struct box *b)
{
    pool_left(b->shelf, b->state == BOX_READY);
    if (b->err.kind) {
        pool_failed(b->shelf, clock_ms());
        if (!b->all->told_spare_failed)
            box_note(b, "a sandbox that was made ahead is lost: %s", b->err.msg);
        b->all->told_spare_failed = true;
    }
    b->shelf = NULL;
    boxes_fill_soon(b->all);
}

static void give(struct box *b, const struct box_spec *spec)
{
    struct boxes *all = b->all;

    pool_left(b->shelf, b->state == BOX_READY);
    b->shelf = NULL;
    b->is_somebodys = true;
    free(b->owner);
    b->owner = str_dup(spec->owner);
    b->one_call = spec->one_call;
    b->made_ms = clock_ms();
    TAILQ_REMOVE(&all->list, b, entry);
    TAILQ_INSERT_TAIL(&all->list, b, entry);
    box_set_policy(b, spec->policy);
    if (b->state == BOX_READY)
        box_begin_life(b);
}

/* One that was made ahead, or NULL. */
static struct box *take_spare(struct boxes *all, const struct box_spec *spec)
{
    struct pool_kind kind = {spec->image ? spec->image : all->spec.image, spec->files_dir};
    struct shelf    *s = NULL;
    struct box      *b;

    /* Where the host's network is the rule, a policy is part of how it is made. */
    if (all->pool && !(all->spec.host_network && spec->policy))
        s = pool_shelf(all->pool, &kind, clock_ms());
    if (!s)
        return NULL;
    b = find_spare(all, s);
    if (b && !is_current(b)) {
        drain(all, s);
        b = NULL;
    } else if ((!b || b->state != BOX_READY) && !all->is_short) { /* else none could be there */
        pool_missed(all->pool, s);
    }
    if (b)
        give(b, spec);
    boxes_fill_soon(all);
    return b;
}

/* ---- the table ---- */

int boxes_check_image(const struct boxes *all, const char *image, struct err *e)
{
    const char *name = image ? image : all->spec.image;

    return all->spec.of_others ? container_check(name, e)
                               : image_parse(name, &(struct image){0}, e);
}

struct box *boxes_make(struct boxes *all, const struct box_spec *spec, struct err *e)
{
    struct box *b;

    if (boxes_check_image(all, spec->image, e) < 0)
        return NULL;
    if (all->stopped) {
        err_set(e, ERR_UNAVAILABLE, "the server is stopping");
        return NULL;
    }
    b = take_spare(all, spec);
    if (!b)
        b = add(all, spec, NULL);
    all->count++;
    pressure_promise(all->pressure, EACH_BYTES);
    box_tell_made(b, spec->call);
    return b;
}

void boxes_leave(struct boxes *all)
{
    all->count--;
    if (all->ops->room)
        all->ops->room(all->owner);
}

/* One has ended: who waited because there were too many of these may begin. */
void boxes_forget(struct box *b)
{
    struct boxes *all = b->all;
    struct box   *other;

    TAILQ_REMOVE(&all->list, b, entry);
    all->ending--;
    TAILQ_FOREACH (other, &all->list, entry)
        if (other->state == BOX_FETCHING)
            later_ask(&other->later);
    if (TAILQ_EMPTY(&all->list) && all->stopped)
        later_ask(&all->stopped_later);
}

static bool is_open(const struct box *b)
{
    return b->state != BOX_ENDING && !b->stop_wanted && !b->err.kind && !b->one_call &&
           b->is_somebodys;
}

struct box *boxes_find(struct boxes *all, const char *id, const char *owner)
{
    struct box *b;

    TAILQ_FOREACH (b, &all->list, entry)
        if (is_open(b) && strcmp(b->id, id) == 0)
            return !*b->owner || strcmp(b->owner, owner) == 0 ? b : NULL;
    return NULL;
}

struct box *boxes_next(struct boxes *all, const char *owner, const struct box *last)
{
    struct box *b = last ? TAILQ_NEXT(last, entry) : TAILQ_FIRST(&all->list);

    while (b && !(is_open(b) && *b->owner && strcmp(b->owner, owner) == 0))
        b = TAILQ_NEXT(b, entry);
    return b;
}

void boxes_stop_owner(struct boxes *all, const char *owner)
{
    struct box *b;

    TAILQ_FOREACH (b, &all->list, entry)
        if (*b->owner && strcmp(b->owner, owner) == 0)
            box_stop(b, "its session ended");
}

static void tell_stopped(void *owner)
{
    struct boxes *all = owner;

    if (TAILQ_EMPTY(&all->list))
        all->stopped(all->stopped_owner);
}

void boxes_stop(struct boxes *all, void (*stopped)(void *owner), void *owner)
{
    all->stopped = stopped;
    all->stopped_owner = owner;
    deadline_clear(&all->tend);
    deadline_clear(&all->relief);
    for (struct box *b = TAILQ_FIRST(&all->list); b; b = TAILQ_NEXT(b, entry))
        box_stop(b, "the server stops");
    later_ask(&all->stopped_later);
}

static struct pool *make_pool(const struct boxes *all)
{
    const struct boxes_spec *spec = &all->spec;
    struct pool_kind         first = {spec->image, spec->files_dir};
    int64_t                  max = spec->pool_bytes / boxes_engine(all, spec->image)->ahead_bytes;

    if (spec->pool_min == 0)
        return NULL;
    return pool_new((size_t)spec->pool_min, (size_t)max, spec->files_dirs_differ ? NULL : &first);
}

struct boxes *boxes_new(const struct boxes_spec *spec, const struct boxes_ops *ops, void *owner)
{
    struct boxes *all = calloc(1, sizeof *all);

    if (!all)
        abort();
    *all = (struct boxes){
        .spec = *spec, .ops = ops, .owner = owner, .runtimes = runtimes_new(spec->base)};
    all->pool = make_pool(all);
    TAILQ_INIT(&all->list);
    later_init(&all->stopped_later, spec->base, tell_stopped, all);
    deadline_init(&all->tend, spec->base, tend, all);
    relief_init(all);
    if (all->pool)
        fill_after(all, FIRST_FILL_MS);
    return all;
}

void boxes_free(struct boxes *all)
{
    assert(TAILQ_EMPTY(&all->list));
    if (all->pool)
        pool_free(all->pool);
    deadline_done(&all->tend);
    relief_done(all);
    runtimes_free(all->runtimes);
    later_done(&all->stopped_later);
    free(all);
}
