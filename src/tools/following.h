/* following - files of sandboxes that clients subscribed to (sandbox://ID/PATH, the log of a server
 * above all): who subscribed is told when they change.
 *
 * Nothing tells us: they are written inside. So while somebody is subscribed to one, its directory
 * is looked at every second; without subscribers nothing is done. */
#pragma once

#include <event2/event.h>

#include "tools/tools.h"

struct following;

struct following *following_new(struct tools *t, struct event_base *base);
void              following_free(struct following *f); /* before the boxes and the server end */

void following_look(struct following *f); /* there may be new subscribers */
