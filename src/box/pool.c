#include "box/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { RETRY_MS = 100, RETRY_MS_MAX = 60000, DOUBLINGS = 9 };

struct pool {
    struct shelf *first; /* the latest one asked for */
    size_t        max;
};

/* A minimum's room is its own, whether it is used or not. */
static size_t count_taken(const struct pool *p)
{
    size_t n = 0;

    for (const struct shelf *s = p->first; s; s = s->next)
        n += s->spares > s->floor ? s->spares : s->floor;
    return n;
}

static size_t count_starting(const struct pool *p)
{
    size_t n = 0;

    for (const struct shelf *s = p->first; s; s = s->next)
        n += s->starting;
    return n;
}

static bool is_kind(const struct pool_kind *a, const struct pool_kind *b)
{
    bool same_dir = a->files_dir && b->files_dir ? strcmp(a->files_dir, b->files_dir) == 0
                                                 : a->files_dir == b->files_dir;

    return same_dir && strcmp(a->image, b->image) == 0;
}

static void shelf_free(struct shelf *s)
{
    free((char *)s->kind.image);
    free((char *)s->kind.files_dir);
    free(s);
}

static struct shelf *shelf_new(const struct pool_kind *kind, size_t floor, int64_t now_ms)
{
    struct shelf *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->kind =
        (struct pool_kind){str_dup(kind->image), kind->files_dir ? str_dup(kind->files_dir) : NULL};
    s->target = s->floor = floor;
    s->looked_ms = s->asked_ms = now_ms;
    return s;
}

struct pool *pool_new(size_t min, size_t max, const struct pool_kind *first)
{
    struct pool *p = calloc(1, sizeof *p);

    if (!p)
        abort();
    p->max = max;
    if (first)
        p->first = shelf_new(first, min < max ? min : max, 0);
    return p;
}

void pool_free(struct pool *p)
{
    while (p->first) {
        struct shelf *s = p->first;
        p->first = s->next;
        shelf_free(s);
    }
    free(p);
}

struct shelf *pool_shelf(struct pool *p, const struct pool_kind *kind, int64_t now_ms)
{
    struct shelf **at = &p->first, *s;
    size_t         n = 0;

    for (; *at && !is_kind(&(*at)->kind, kind); at = &(*at)->next)
        n++;
    s = *at;
    if (s)
        *at = s->next;
    else if (n < POOL_KINDS_MAX)
        s = shelf_new(kind, 0, now_ms);
    else
        return NULL;
    s->asked_ms = now_ms;
    s->next = p->first;
    p->first = s;
    return s;
}

static size_t ready(const struct shelf *s)
{
    return s->spares - s->starting;
}

void pool_missed(struct pool *p, struct shelf *s)
{
    if (s->target < p->max)
        s->target++;
    s->least = 0;
}

void pool_began(struct shelf *s)
{
    s->spares++;
    s->starting++;
}

void pool_became_ready(struct shelf *s)
{
    s->starting--;
    s->failures = 0;
}

void pool_left(struct shelf *s, bool was_ready)
{
    s->spares--;
    if (!was_ready)
        s->starting--;
    if (ready(s) < s->least)
        s->least = ready(s);
}

void pool_failed(struct shelf *s, int64_t now_ms)
{
    int64_t pause = s->failures <= DOUBLINGS ? RETRY_MS << s->failures : RETRY_MS_MAX;

    s->failures++;
    s->retry_ms = now_ms + pause;
}

void pool_works(struct pool *p)
{
    for (struct shelf *s = p->first; s; s = s->next)
        if (s->failures > 0) {
            s->failures = 0;
            s->retry_ms = 0;
        }
}

static bool has_room(const struct pool *p)
{
    return count_taken(p) < p->max;
}

static bool can_grow(const struct pool *p, const struct shelf *s, int64_t now_ms)
{
    return s->spares < (has_room(p) ? s->target : s->floor) && now_ms >= s->retry_ms;
}

struct shelf *pool_wanting(struct pool *p, int64_t now_ms)
{
    if (count_starting(p) >= POOL_STARTING_MAX)
        return NULL;
    for (struct shelf *s = p->first; s; s = s->next)
        if (can_grow(p, s, now_ms))
            return s;
    return NULL;
}

bool pool_is_low(const struct pool *p, int64_t now_ms)
{
    for (const struct shelf *s = p->first; s; s = s->next)
        if (2 * ready(s) < s->target && (s->starting > 0 || can_grow(p, s, now_ms)))
            return true;
    return false;
}

int64_t pool_pause_ms(const struct pool *p, int64_t now_ms, int64_t most_ms)
{
    for (const struct shelf *s = p->first; s; s = s->next)
        if (s->spares < s->target && s->retry_ms > now_ms && s->retry_ms - now_ms < most_ms)
            most_ms = s->retry_ms - now_ms;
    return most_ms;
}

struct shelf *pool_take_surplus(struct pool *p, int64_t now_ms)
{
    struct shelf *idle = NULL;
    bool          lacks_room = false;

    for (struct shelf *s = p->first; s; s = s->next) {
        if (s->spares > s->target)
            return s;
        if (now_ms - s->asked_ms >= POOL_LOWER_MS)
            idle = s->spares > s->floor ? s : idle; /* the last one: unasked for longest */
        else if (s->spares >= s->floor && s->spares < s->target && now_ms >= s->retry_ms)
            lacks_room = !has_room(p);
    }
    if (!lacks_room || !idle)
        return NULL;
    idle->target =
        idle->spares - 1; /* else it would have the room again as soon as there is some */
    return idle;
}

void pool_lower(struct pool *p, int64_t now_ms)
{
    struct shelf **at = &p->first;

    while (*at) {
        struct shelf *s = *at;
        if (now_ms - s->looked_ms >= POOL_LOWER_MS) {
            bool unasked = s->asked_ms < s->looked_ms;
            if (s->target > s->floor && (unasked || s->least > 0 || s->failures > 0))
                s->target--;
            s->least = ready(s);
            s->looked_ms = now_ms;
        }
        if (s->target == 0 && s->floor == 0 && s->spares == 0) {
            *at = s->next;
            shelf_free(s);
        } else {
            at = &s->next;
        }
    }
}
