/* progress - signs of life of a call, not more often than a person can read. The newest is always
 * told, if need be a moment later: a script that speaks once and then works is heard. Who comes
 * after another one for the same call counts on. */
#pragma once

#include <event2/event.h>
#include <stdint.h>

#include "loop/deadline.h"
#include "mcp/call.h"

enum { PROGRESS_BYTES = 256 };

struct progress {
    struct mcp_call *call;
    struct deadline  pause;
    int64_t          told_ms;
    double           count;
    char             waiting[PROGRESS_BYTES]; /* "": nothing */
};

void progress_init(struct progress *p, struct event_base *base, struct mcp_call *c);
void progress_tell(struct progress *p, const char *sentence);
void progress_done(struct progress *p); /* before its call is gone */
