#include "tools/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static bool is_same(const struct turn *a, const struct turn *b)
{
    return strcmp(a->owner, b->owner) == 0 && (*a->owner || a->call == b->call);
}

static bool is_same_call(const struct turn *a, const struct turn *b)
{
    return is_same(a, b) && a->call == b->call;
}

static struct turn *find_later(const struct turns *t, uint64_t round)
{
    struct turn *turn;

    TAILQ_FOREACH (turn, &t->waiting, entry)
        if (turn->round > round)
            return turn;
    return NULL;
}

void turns_init(struct turns *t)
{
    *t = (struct turns){0};
    TAILQ_INIT(&t->waiting);
    TAILQ_INIT(&t->taken);
}

void turns_add(struct turns *t, struct turn *turn, const char *owner, const void *call)
{
    struct turn *other;

    *turn = (struct turn){.owner = str_dup(owner), .call = call, .round = t->round};
    TAILQ_FOREACH (other, &t->waiting, entry)
        if (is_same(other, turn))
            turn->round = other->round + 1; /* the last one's is the highest */
    other = find_later(t, turn->round);
    if (other)
        TAILQ_INSERT_BEFORE(other, turn, entry);
    else
        TAILQ_INSERT_TAIL(&t->waiting, turn, entry);
}

static struct turn *take(struct turns *t, struct turn *turn)
{
    if (!turn)
        return NULL;
    TAILQ_REMOVE(&t->waiting, turn, entry);
    TAILQ_INSERT_TAIL(&t->taken, turn, entry);
    turn->is_taken = true;
    return turn;
}

struct turn *turns_take(struct turns *t)
{
    struct turn *turn = take(t, TAILQ_FIRST(&t->waiting));

    if (turn)
        t->round = turn->round;
    return turn;
}

typedef bool is_same_fn(const struct turn *a, const struct turn *b);

static bool has_any(const struct turns *t, const struct turn *waits, is_same_fn *same)
{
    const struct turn *turn;

    TAILQ_FOREACH (turn, &t->taken, entry)
        if (same(turn, waits))
            return true;
    return false;
}

/* The round stays: those before it still wait. */
static struct turn *take_first(struct turns *t, is_same_fn *same)
{
    struct turn *turn;

    TAILQ_FOREACH (turn, &t->waiting, entry)
        if (!has_any(t, turn, same))
            return take(t, turn);
    return NULL;
}

struct turn *turns_take_first_of_call(struct turns *t)
{
    return take_first(t, is_same_call);
}

struct turn *turns_take_first_of_owner(struct turns *t)
{
    return take_first(t, is_same);
}

void turns_drop(struct turns *t, struct turn *turn)
{
    TAILQ_REMOVE(turn->is_taken ? &t->taken : &t->waiting, turn, entry);
    free(turn->owner);
    turn->owner = NULL;
}
