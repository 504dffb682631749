#include "loop/deadline.h"

#include <stdlib.h>

#include "base/clock.h"

static void arm(struct deadline *d, int64_t us)
{
    struct timeval t = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};

    evtimer_add(d->event, &t);
}

/* The loop's clock moves with the kernel's tick, of up to 10 ms: by ours it may be too early. */
static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct deadline *d = arg;
    int64_t          left_us = d->due_us - clock_us();

    (void)fd;
    (void)what;
    if (left_us > 0)
        arm(d, left_us);
    else
        d->passed(d->owner);
}

void deadline_init(struct deadline *d, struct event_base *base, void (*passed)(void *owner),
                   void *owner)
{
    *d = (struct deadline){.base = base, .passed = passed, .owner = owner};
}

void deadline_done(struct deadline *d)
{
    if (d->event)
        event_free(d->event);
    d->event = NULL;
}

void deadline_set(struct deadline *d, int64_t ms)
{
    static const int64_t century_ms = 100LL * 366 * 24 * 3600 * 1000;
    int64_t              us = (ms < century_ms ? ms : century_ms) * 1000; /* options have no end */

    d->due_us = clock_us() + us;
    event_base_update_cache_time(d->base); /* else it counts from when this turn began: too early */
    if (!d->event && !(d->event = evtimer_new(d->base, on_timeout, d)))
        abort();
    arm(d, us);
}

void deadline_clear(struct deadline *d)
{
    if (d->event)
        evtimer_del(d->event);
}
