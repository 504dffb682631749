/* turns - who is next, of many who wait: one after another by owner, so that who asks for twenty
 * things delays nobody who asks for one.
 *
 * Each turn has a round: the one that is on when it is asked for, or the one behind the last for
 * which its owner waits. The lowest round is next; within a round, who came first. Pure; a turn
 * lies in what waits, and the queue owns nothing but its owner's name. */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

struct turn {
    TAILQ_ENTRY(turn) entry;
    char       *owner;
    const void *call;
    uint64_t    round;
};

struct turns {
    TAILQ_HEAD(turn_list, turn) waiting; /* the next one first */
    uint64_t round;                      /* of the last that was taken */
};

void turns_init(struct turns *t);

/* `owner` as mcp_call_owner has it; what nobody owns ("") is told apart by its call. */
void turns_add(struct turns *t, struct turn *turn, const char *owner, const void *call);

struct turn *turns_take(struct turns *t);                    /* the next one, or NULL */
void         turns_drop(struct turns *t, struct turn *turn); /* it waits no more */
