#include "base/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static bool is_same(const struct place *a, const struct place *b)
{
    return strcmp(a->owner, b->owner) == 0 && (*a->owner || a->call == b->call);
}

static bool is_same_call(const struct place *a, const struct place *b)
{
    return is_same(a, b) && a->call == b->call;
}

static bool is_later(const struct place *a, const struct place *b)
{
    return a->round > b->round || (a->round == b->round && !a->is_new && b->is_new);
}

static void insert(struct turns *t, struct place *place)
{
    struct place *other;

    TAILQ_FOREACH (other, &t->waiting, entry)
        if (is_later(other, place)) {
            TAILQ_INSERT_BEFORE(other, place, entry);
            return;
        }
    TAILQ_INSERT_TAIL(&t->waiting, place, entry);
}

/* One that waits is gone. */
static void close_ranks(struct turns *t, const struct place *gone)
{
    struct place *place;

    t->n--;
    TAILQ_FOREACH (place, &t->waiting, entry)
        if (is_same(place, gone) && place->before > gone->before)
            place->before--;
}

/* Its owner's others come in later rounds than the one that it was taken in. */
static void put_back(struct turns *t, const struct place *taken)
{
    struct place_list others = TAILQ_HEAD_INITIALIZER(others);
    struct place     *place, *next;
    uint64_t          round = taken->round;

    for (place = TAILQ_FIRST(&t->waiting); place; place = next) {
        next = TAILQ_NEXT(place, entry);
        if (is_same(place, taken)) {
            TAILQ_REMOVE(&t->waiting, place, entry);
            TAILQ_INSERT_TAIL(&others, place, entry);
        }
    }
    while ((place = TAILQ_FIRST(&others))) {
        TAILQ_REMOVE(&others, place, entry);
        place->round = round = place->round > round ? place->round : round + 1;
        insert(t, place);
    }
}

void turns_init(struct turns *t)
{
    *t = (struct turns){0};
    TAILQ_INIT(&t->waiting);
    TAILQ_INIT(&t->taken);
}

void turns_add(struct turns *t, struct place *place, const char *owner, const void *call)
{
    struct place *other;

    *place = (struct place){
        .owner = str_dup(owner), .call = call, .round = t->round + 1, .is_new = true};
    TAILQ_FOREACH (other, &t->waiting, entry)
        if (is_same(other, place)) {
            place->round = other->round + 1; /* the last one's is the highest */
            place->before++;
            place->is_new = false;
        }
    insert(t, place);
    t->n++;
}

static struct place *take(struct turns *t, struct place *place)
{
    if (!place)
        return NULL;
    TAILQ_REMOVE(&t->waiting, place, entry);
    close_ranks(t, place);
    if (place->round < t->round) {
        place->round = t->round;
        put_back(t, place);
    }
    TAILQ_INSERT_TAIL(&t->taken, place, entry);
    place->is_taken = true;
    return place;
}

/* A round that has begun does not come again: who asks one after the other would always be first.
 */
static struct place *take_next(struct turns *t, struct place *place)
{
    if (place && place->round > t->round)
        t->round = place->round;
    return take(t, place);
}

struct place *turns_take(struct turns *t)
{
    return take_next(t, TAILQ_FIRST(&t->waiting));
}

struct place *turns_find_who_may(const struct turns *t, turns_may *may, void *context)
{
    struct place *place;

    TAILQ_FOREACH (place, &t->waiting, entry)
        if (may(context, place))
            return place;
    return NULL;
}

struct place *turns_take_who_may(struct turns *t, turns_may *may, void *context)
{
    return take_next(t, turns_find_who_may(t, may, context));
}

typedef bool is_same_fn(const struct place *a, const struct place *b);

static bool has_any(const struct turns *t, const struct place *waits, is_same_fn *same)
{
    const struct place *place;

    TAILQ_FOREACH (place, &t->taken, entry)
        if (same(place, waits))
            return true;
    return false;
}

/* The round stays: those before it still wait. */
static struct place *take_first(struct turns *t, is_same_fn *same)
{
    struct place *place;

    TAILQ_FOREACH (place, &t->waiting, entry)
        if (!has_any(t, place, same))
            return take(t, place);
    return NULL;
}

struct place *turns_take_first_of_call(struct turns *t)
{
    return take_first(t, is_same_call);
}

struct place *turns_take_first_of_owner(struct turns *t)
{
    return take_first(t, is_same);
}

struct place *turns_last(const struct turns *t)
{
    struct place *place, *last = NULL;

    TAILQ_FOREACH (place, &t->waiting, entry)
        if (!last || place->before >= last->before)
            last = place;
    return last;
}

size_t turns_count_same(const struct turns *t, const struct place *as)
{
    const struct place *place;
    size_t              n = 0;

    TAILQ_FOREACH (place, &t->waiting, entry)
        n += is_same(place, as);
    return n;
}

void turns_drop(struct turns *t, struct place *place)
{
    TAILQ_REMOVE(place->is_taken ? &t->taken : &t->waiting, place, entry);
    if (!place->is_taken)
        close_ranks(t, place);
    free(place->owner);
    place->owner = NULL;
}
