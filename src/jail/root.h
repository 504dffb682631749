/* root - the file system of a sandbox, built from the entries of its plan.
 *
 * Two halves. Outside, with the host's rights, every source becomes a detached mount (open_tree)
 * that already is read-only, nosuid, and mapped to its owner: later only descriptors are used, so
 * that a source below a 0700 directory is no obstacle and no host path is looked up from inside.
 * Inside, in the new mount namespace, the entries are laid into a fresh tmpfs, which then becomes
 * the root, is sealed read-only, and the host's mounts are gone. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "jail/plan.h"

int root_open_sources(struct plan *plan, uid_t base, struct err *e); /* fills source_fd */

void root_close_sources(struct plan *plan); /* the child has its own copies */

int root_build(const struct plan *plan,
               struct err        *e); /* the new root is the working directory then */
int root_enter(struct err *e);
