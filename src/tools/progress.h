/* progress - signs of life of a call, not more often than a person can read. */
#pragma once

#include <stdint.h>

#include "mcp/call.h"

struct progress { /* zeros to begin with */
    int64_t told_ms;
    double  count;
};

void progress_tell(struct progress *p, struct mcp_call *c, const char *sentence);
