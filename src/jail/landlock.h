/* landlock - a second lock on the file system, by a module of the kernel that knows nothing of
 * mounts or ids: what the plan makes writable can be written, everything else read and executed;
 * and abstract unix sockets of others cannot be reached, not even with the host's network. */
#pragma once

#include "base/err.h"
#include "jail/plan.h"

/* For this process and all that come from it, for good; `version` is ruleset_version's. Paths are
 * looked up in the new root. */
int landlock_restrict(int version, const struct plan *plan, struct err *e);
