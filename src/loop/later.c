#include "loop/later.h"

#include <stdlib.h>

static void on_active(evutil_socket_t fd, short what, void *arg)
{
    struct later *l = arg;

    (void)fd;
    (void)what;
    l->step(l->owner);
}

void later_init(struct later *l, struct event_base *base, void (*step)(void *owner), void *owner)
{
    *l = (struct later){event_new(base, -1, 0, on_active, l), step, owner};
    if (!l->event)
        abort();
}

void later_done(struct later *l)
{
    if (l->event)
        event_free(l->event);
    l->event = NULL;
}

void later_ask(struct later *l)
{
    event_active(l->event, EV_TIMEOUT, 1);
}
