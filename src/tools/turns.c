#include "tools/turns.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static bool is_same(const struct turn *a, const struct turn *b)
{
    return strcmp(a->owner, b->owner) == 0 && (*a->owner || a->call == b->call);
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

struct turn *turns_take(struct turns *t)
{
    struct turn *turn = TAILQ_FIRST(&t->waiting);

    if (!turn)
        return NULL;
    t->round = turn->round;
    turns_drop(t, turn);
    return turn;
}

void turns_drop(struct turns *t, struct turn *turn)
{
    TAILQ_REMOVE(&t->waiting, turn, entry);
    free(turn->owner);
    turn->owner = NULL;
}
