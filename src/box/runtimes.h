/* runtimes - the Nodes that sandboxes are started with, fetched while the loop goes on.
 *
 * One that is in the store is there at once (from the loop all the same). Else a jerboa-fetch gets
 * it, one for all who wait for the same image; its progress goes to our stderr.
 *
 * Images of a container engine are looked for, and pulled, by `jerboa container`; what it found
 * is believed as long as we live. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/err.h"
#include "engine/engine.h"
#include "store/runtime.h"

struct runtimes;
struct runtime_wait;

struct runtimes *runtimes_new(struct event_base *base);
void             runtimes_free(struct runtimes *r); /* ends what fetches; nobody is told */

/* `done` is called once, from the loop, unless cancelled. No deadline: a download over a slow line
 * may take long, and who waits can cancel. may_pull is of container engines: an image that the
 * daemon lacks is pulled, within a quarter of an hour, while somebody waits for it. */
struct runtime_wait *
runtimes_get(struct runtimes *r, const struct engine *engine, const char *image, bool may_pull,
             void (*done)(void *owner, const struct runtime *runtime, const struct err *e),
             void *owner);
/* What is there at this moment; ERR_NOT_FOUND: it would have to be got. */
int  runtimes_find(const struct runtimes *r, const struct engine *engine, const char *image,
                   struct runtime *ret, struct err *e);
bool runtime_wait_fetches(const struct runtime_wait *w); /* it was not there */
void runtime_wait_cancel(struct runtime_wait *w);        /* a fetch for the store goes on */
