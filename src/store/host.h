/* host - the Node that is installed on this machine, when a runtime cannot be fetched. */
#pragma once

#include "store/runtime.h"

/* The `node` of PATH that stands in a bin/ directory, its version by asking it (5 s at most).
 * ERR_NOT_FOUND when there is none. */
int host_find(struct runtime *ret, struct err *e);
