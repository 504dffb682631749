/* later - a step that runs from the top of the loop, soon, once, however often it was asked for.
 *
 * Callbacks record a fact and ask for the step; so a step never runs inside another object's
 * callback, may free anything, and nothing is called before the function that started it has
 * returned. */
#pragma once

#include <event2/event.h>

struct later {
    struct event *event;
    void (*step)(void *owner);
    void *owner;
};

void later_init(struct later *l, struct event_base *base, void (*step)(void *owner), void *owner);
void later_done(struct later *l);
void later_ask(struct later *l);
