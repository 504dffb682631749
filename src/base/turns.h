/* turns - who is next, of many who wait: one after another by owner, so that who asks for twenty
 * things delays nobody who asks for one.
 *
 * Each place has a round: the one after that which is on when it is asked for, or the one behind
 * the last for which its owner waits. The lowest round is next; within a round, who waits for
 * nothing else, then who came first. Nobody saves turns up: where an owner who was passed over gets
 * one late, it is that of the round which is on, and his others come behind it. A place that was
 * taken is known until it is dropped: so who has none can be told from who has. Pure; a place lies
 * in what waits, and the queue owns nothing but its owner's name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct place {
    TAILQ_ENTRY(place) entry;
    char       *owner;
    const void *call;
    uint64_t    round;
    size_t      before; /* it, of its owner's, that wait */
    bool        is_new; /* there was none when it was asked for */
    bool        is_taken;
};

struct turns {
    TAILQ_HEAD(place_list, place) waiting; /* the next one first */
    struct place_list taken;
    uint64_t          round; /* the highest whose turn has come */
    size_t            n;     /* that wait */
};

void turns_init(struct turns *t);

/* `owner`: whose it is; what nobody owns ("") is told apart by its call. */
void turns_add(struct turns *t, struct place *place, const char *owner, const void *call);

/* The next one; the next one of a call that has none, of an owner who has none. NULL: there is
 * none. */
struct place *turns_take(struct turns *t);
struct place *turns_take_first_of_call(struct turns *t);
struct place *turns_take_first_of_owner(struct turns *t);

/* The next one who may go, or who could; who may not, for reasons of his own, holds nobody up. */
typedef bool  turns_may(void *context, const struct place *place);
struct place *turns_take_who_may(struct turns *t, turns_may *may, void *context);
struct place *turns_find_who_may(const struct turns *t, turns_may *may, void *context);

/* The last of who waits for most. NULL: nobody waits. */
struct place *turns_last(const struct turns *t);
size_t        turns_count_same(const struct turns *t, const struct place *as); /* its owner's */

void turns_drop(struct turns *t, struct place *place); /* it waits no more, or is over */
