/* admission - calls that need a sandbox of their own go on when there is room for one.
 *
 * As a rule at once. Else they stand in line: owners in turns (turns.h), and who has as many as he
 * may have holds nobody up. They wait for a bounded time and in a bounded number, are told so as
 * progress, and then are told to try again. Who cancels, or is gone, leaves the line with his call.
 *
 * What a call waits for must be able to come without its owner: when all there are are his and
 * stay until he stops one, he is told at once. So sandbox_initialize and run_js_ephemeral wait
 * alike: for others, and for runs that end. */
#pragma once

#include <event2/event.h>

#include "box/box.h"
#include "mcp/call.h"

struct admission;

struct admission *admission_new(struct event_base *base, struct boxes *boxes, int64_t wait_ms);
void              admission_free(struct admission *a); /* when all calls are over; NULL is fine */

/* Calls `then`, now or from the loop, or fails the call. Until then its data is ours. */
void admission_wait(struct admission *a, struct mcp_call *c, void (*then)(struct mcp_call *c));
void admission_look(struct admission *a); /* soon: there may be room */
