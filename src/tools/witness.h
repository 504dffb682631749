/* witness - one call of a tool in the audit log: what is asked, before anything of it is done, and
 * how it ended. Of code and commands hash and size, never the text. */
#pragma once

#include <stdbool.h>

#include "mcp/call.h"
#include "trail/trail.h"

/* False: the call was failed, because its line is lost and the operator wants no call without. */
bool witness_begin(struct mcp_call *c);

const char          *witness_call(const struct mcp_call *c); /* its id; NULL: there is no log */
struct trail_subject witness_subject(const struct mcp_call *c);
