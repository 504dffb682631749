/* turns - who is next, of many who wait: one after another by owner, so that who asks for twenty
 * things delays nobody who asks for one.
 *
 * Each turn has a round: the one that is on when it is asked for, or the one behind the last for
 * which its owner waits. The lowest round is next; within a round, who came first. A turn that was
 * taken is known until it is dropped: so who has none can be told from who has. Pure; a turn lies
 * in what waits, and the queue owns nothing but its owner's name. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct turn {
    TAILQ_ENTRY(turn) entry;
    char       *owner;
    const void *call;
    uint64_t    round;
    bool        is_taken;
};

struct turns {
    TAILQ_HEAD(turn_list, turn) waiting; /* the next one first */
    struct turn_list taken;
    uint64_t         round; /* of the last that was the next one */
};

void turns_init(struct turns *t);

/* `owner` as mcp_call_owner has it; what nobody owns ("") is told apart by its call. */
void turns_add(struct turns *t, struct turn *turn, const char *owner, const void *call);

/* The next one; the next one of a call that has none, of an owner who has none. NULL: there is
 * none. */
struct turn *turns_take(struct turns *t);
struct turn *turns_take_first_of_call(struct turns *t);
struct turn *turns_take_first_of_owner(struct turns *t);

void turns_drop(struct turns *t, struct turn *turn); /* it waits no more, or is over */
