/* Theory of operation. A box goes through states in one direction: its runtime is awaited, its
 * sandbox starts, it is ready, it ends. Callbacks record what happened and ask for the step, and
 * only the step moves it on, calls the first in line, and frees it: when the sandbox is gone, which
 * means that nothing of it is left on the machine. */
#include "box/box.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/str.h"
#include "box/ports.h"
#include "box/runtimes.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "store/image.h"

enum { NEWS_MS = 1000 };
enum box_state { BOX_FETCHING, BOX_STARTING, BOX_READY, BOX_ENDING };

struct box {
    TAILQ_ENTRY(box) entry;
    struct boxes        *all;
    char                 id[BOX_ID_MAX];
    char                *owner, *files_dir, *image;
    const struct policy *policy;
    bool                 one_call;
    enum box_state       state;
    struct runtime_wait *wait;
    struct runtime       runtime;
    int                  runtime_fd; /* held, so that gc does not remove it */
    struct sandbox      *sandbox;
    json_t              *walls;
    struct ports         ports;
    struct layer_hold    layer;
    struct turn         *line;            /* the first one is on, once the box is ready */
    struct deadline      age, idle, news; /* news: for who waits while its Node is fetched */
    int64_t              made_ms;
    struct later         later;
    void                *data;
    void (*free_data)(void *data);

    /* facts */
    bool       ready, stop_wanted, gone; /* ready stays: it has been */
    struct err err;                      /* why it ended by itself */
};

struct boxes {
    struct boxes_spec       spec;
    const struct boxes_ops *ops;
    void                   *owner;
    struct runtimes        *runtimes;
    TAILQ_HEAD(box_list, box) list; /* oldest first */
    size_t          count;          /* of those that do not end */
    struct port_set ports;
    bool            told_walls;
    void (*stopped)(void *owner);
    void        *stopped_owner;
    struct later stopped_later;
};

static void tell_changed(const struct box *b)
{
    if (b->all->ops->changed && !b->one_call)
        b->all->ops->changed(b->all->owner, b->owner);
}

static void lose_line(struct box *b)
{
    struct err lost = b->err;

    if (!lost.kind)
        err_set(&lost, ERR_UNAVAILABLE, "sandbox %s was stopped", b->id);
    while (b->line) {
        struct turn *t = b->line;
        b->line = t->next;
        t->box = NULL;
        t->ops->lost(t->owner, &lost);
    }
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

/* Who has his turn uses the sandbox, so he hears of it now: his own step may come before ours. */
static void on_gone(void *owner, const struct err *e)
{
    struct box *b = owner;

    b->sandbox = NULL;
    if (!b->err.kind)
        b->err = *e;
    b->gone = true;
    lose_line(b);
    later_ask(&b->later);
}

static const struct sandbox_ops sandbox_ops = {on_gone, on_walls, on_ready};

static int start_sandbox(struct box *b, struct err *e)
{
    struct native_spec spec = b->all->spec.limits;
    struct egress_spec network = b->all->spec.network;
    autojson json_t   *plan = NULL;

    spec.runtime_dir = b->runtime.dir;
    spec.files_dir = b->files_dir;
    spec.host_network = b->all->spec.host_network && !b->policy;
    network.policy = b->policy;
    if (b->all->spec.host_network) /* what decides nothing cannot be asked */
        network.operator_policy = b->policy;
    plan = native_plan(&spec, e);
    if (!plan)
        return -1;
    b->sandbox = sandbox_start(b->all->spec.base, plan, spec.host_network ? NULL : &network,
                               &sandbox_ops, b, e);
    return b->sandbox ? 0 : -1;
}

static void on_runtime(void *owner, const struct runtime *runtime, const struct err *e)
{
    struct box *b = owner;

    b->wait = NULL;
    if (e->kind)
        b->err = *e;
    else
        b->runtime = *runtime;
    if (!e->kind)
        b->runtime_fd = runtime_hold(runtime, &b->err);
    later_ask(&b->later);
}

/* ---- the step ---- */

static void box_free(struct box *b)
{
    struct boxes *all = b->all;

    TAILQ_REMOVE(&all->list, b, entry);
    if (TAILQ_EMPTY(&all->list) && all->stopped)
        later_ask(&all->stopped_later);
    if (b->free_data)
        b->free_data(b->data);
    layer_release(&b->layer);
    fd_close(&b->runtime_fd);
    deadline_done(&b->age);
    deadline_done(&b->idle);
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
    b->state = BOX_ENDING;
    b->all->count--;
    deadline_clear(&b->age);
    deadline_clear(&b->idle);
    deadline_clear(&b->news);
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

static void be_ready(struct box *b)
{
    b->state = BOX_READY;
    if (b->all->spec.age_ms > 0)
        deadline_set(&b->age, b->all->spec.age_ms);
    tell_changed(b);
}

static void call_first(struct box *b)
{
    struct turn *t = b->line;

    if (t && !t->is_on) {
        t->is_on = true;
        deadline_clear(&b->idle);
        t->ops->go(t->owner);
    } else if (!t && b->all->spec.idle_ms > 0) {
        deadline_set(&b->idle, b->all->spec.idle_ms);
    }
}

static void step(void *owner)
{
    struct box *b = owner;

    if (b->state == BOX_FETCHING && !b->wait && !b->err.kind && !b->stop_wanted)
        begin_sandbox(b);
    if (b->state == BOX_STARTING && b->ready)
        be_ready(b);
    if ((b->stop_wanted || b->err.kind || b->gone) && b->state != BOX_ENDING)
        begin_end(b);
    if (b->state == BOX_READY)
        call_first(b);
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
    autofree char *sentence = str_format("fetching Node.js for %s, %lld s", b->image,
                                         (long long)(clock_ms() - b->made_ms) / 1000);

    for (struct turn *t = b->line; t; t = t->next)
        if (t->ops->waits)
            t->ops->waits(t->owner, sentence);
    deadline_set(&b->news, NEWS_MS);
}

static void on_idle(void *owner)
{
    box_stop(owner);
}

void box_stop(struct box *b)
{
    b->stop_wanted = true;
    later_ask(&b->later);
}

/* ---- its line ---- */

void turn_start(struct turn *t, struct box *b, const struct turn_ops *ops, void *owner)
{
    struct turn **at = &b->line;

    *t = (struct turn){.box = b, .ops = ops, .owner = owner};
    while (*at)
        at = &(*at)->next;
    *at = t;
    later_ask(&b->later);
}

void turn_end(struct turn *t)
{
    struct turn **at;

    if (!t->box)
        return;
    for (at = &t->box->line; *at != t; at = &(*at)->next)
        assert(*at);
    *at = t->next;
    later_ask(&t->box->later);
    t->box = NULL;
}

/* ---- the table ---- */

/* 128 random bits in the form of a UUID, version 4. */
static void make_id(char ret[BOX_ID_MAX])
{
    char hex[33];

    random_id(hex);
    hex[12] = '4';
    hex[16] = "89ab"[str_hex_digit(hex[16]) & 3];
    snprintf(ret, BOX_ID_MAX, "js-sbx-%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
             hex + 20);
}

static struct box *box_new(struct boxes *all, const struct box_spec *spec)
{
    struct box *b = calloc(1, sizeof *b);

    if (!b)
        abort();
    *b = (struct box){.all = all,
                      .owner = str_dup(spec->owner),
                      .files_dir = spec->files_dir ? str_dup(spec->files_dir) : NULL,
                      .image = str_dup(spec->image ? spec->image : all->spec.image),
                      .policy = spec->policy,
                      .one_call = spec->one_call,
                      .runtime_fd = -1,
                      .layer.fd = -1};
    make_id(b->id);
    deadline_init(&b->age, all->spec.base, on_age, b);
    deadline_init(&b->idle, all->spec.base, on_idle, b);
    deadline_init(&b->news, all->spec.base, on_news, b);
    b->made_ms = clock_ms();
    later_init(&b->later, all->spec.base, step, b);
    TAILQ_INSERT_TAIL(&all->list, b, entry);
    all->count++;
    return b;
}

struct box *boxes_make(struct boxes *all, const struct box_spec *spec, struct err *e)
{
    struct image image;
    struct box  *b;

    if (image_parse(spec->image ? spec->image : all->spec.image, &image, e) < 0)
        return NULL;
    if (all->stopped) {
        err_set(e, ERR_UNAVAILABLE, "the server is stopping");
        return NULL;
    }
    if ((int64_t)all->count >= all->spec.max) {
        err_set(e, ERR_LIMIT, "there are %zu sandboxes, as many as this server allows", all->count);
        return NULL;
    }
    b = box_new(all, spec);
    b->wait = runtimes_get(all->runtimes, b->image, on_runtime, b);
    if (runtime_wait_fetches(b->wait))
        deadline_set(&b->news, 0);
    return b;
}

static bool is_open(const struct box *b)
{
    return b->state != BOX_ENDING && !b->stop_wanted && !b->err.kind && !b->one_call;
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
            box_stop(b);
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
    for (struct box *b = TAILQ_FIRST(&all->list); b; b = TAILQ_NEXT(b, entry))
        box_stop(b);
    later_ask(&all->stopped_later);
}

struct boxes *boxes_new(const struct boxes_spec *spec, const struct boxes_ops *ops, void *owner)
{
    struct boxes *all = calloc(1, sizeof *all);

    if (!all)
        abort();
    *all = (struct boxes){
        .spec = *spec, .ops = ops, .owner = owner, .runtimes = runtimes_new(spec->base)};
    TAILQ_INIT(&all->list);
    later_init(&all->stopped_later, spec->base, tell_stopped, all);
    return all;
}

void boxes_free(struct boxes *all)
{
    assert(TAILQ_EMPTY(&all->list));
    runtimes_free(all->runtimes);
    later_done(&all->stopped_later);
    free(all);
}

/* ---- what others may know ---- */

struct event_base *box_base(const struct box *b)
{
    return b->all->spec.base;
}

const char *box_id(const struct box *b)
{
    return b->id;
}

bool box_has_runtime(const struct box *b)
{
    return *b->runtime.dir != '\0';
}

bool box_was_ready(const struct box *b)
{
    return b->ready;
}

struct sandbox *box_sandbox(const struct box *b)
{
    return b->sandbox;
}

const json_t *box_walls(const struct box *b)
{
    return b->walls;
}

const char *box_files_dir(const struct box *b)
{
    return b->files_dir;
}

const char *box_node_version(const struct box *b)
{
    return b->runtime.version;
}

const char *box_runtime_dir(const struct box *b)
{
    return b->runtime.dir;
}

const char *box_scratch_dir(const struct box *b)
{
    return b->all->spec.scratch_dir;
}

const char *const *box_env(const struct box *b)
{
    return b->all->spec.env;
}

void box_hold_layer(struct box *b, const struct layer_hold *hold)
{
    layer_release(&b->layer);
    b->layer = *hold;
}

bool box_has_egress(const struct box *b)
{
    return b->sandbox && sandbox_egress(b->sandbox);
}

void box_set_policy(struct box *b, const struct policy *policy)
{
    if (box_has_egress(b))
        egress_set_policy(sandbox_egress(b->sandbox), policy);
}

int box_publish(struct box *b, uint16_t port, uint16_t *ret_host, struct err *e)
{
    return ports_publish(&b->ports, &b->all->ports, b->sandbox, port, ret_host, e);
}

void box_note(const struct box *b, const char *fmt, ...)
{
    autofree char *sentence = NULL;
    va_list        ap;

    va_start(ap, fmt);
    sentence = str_vformat(fmt, ap);
    va_end(ap);
    if (b->all->ops->note)
        b->all->ops->note(b->all->owner, sentence);
}

void box_set_data(struct box *b, void *data, void (*free_data)(void *data))
{
    b->data = data;
    b->free_data = free_data;
}

void *box_data(const struct box *b)
{
    return b->data;
}
