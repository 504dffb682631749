/* deadline - one moment, once, and never before it. Every object on the loop has one, or says why
 * not. One that is never set costs nothing. */
#pragma once

#include <event2/event.h>
#include <stdint.h>

struct deadline {
    struct event_base *base;
    struct event      *event;  /* NULL: it was never set */
    int64_t            due_us; /* a clock of milliseconds would pass one early */
    void (*passed)(void *owner);
    void *owner;
};

void deadline_init(struct deadline *d, struct event_base *base, void (*passed)(void *owner),
                   void *owner);
void deadline_done(struct deadline *d);
void deadline_set(struct deadline *d, int64_t ms); /* from now; replaces an earlier one */
void deadline_clear(struct deadline *d);
