/* root - the file system of a sandbox, built from the entries of its plan.
 *
 * Two halves. First every source becomes a detached mount (open_tree) that already is read-only,
 * nosuid, and mapped to its owner, or an open file: later only descriptors are used. Root does that
 * outside, with the host's rights, so that a source below a 0700 directory is no obstacle. An
 * ordinary user may do it only in the new mount namespace, where the host's mounts still are, and
 * maps nothing: what is his outside is root's inside anyway. Then, in the new mount namespace, the
 * entries are laid into a fresh tmpfs, which then becomes the root, is sealed read-only, and the
 * host's mounts are gone. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "jail/idrange.h"
#include "jail/plan.h"

int root_open_sources(struct plan *plan, const struct idrange *ids,
                      struct err *e); /* fills source_fd */

/* A layer of the store, read-only, as a detached mount. Who owns it outside is root inside, so that
 * code can change its own view of it; where the file system cannot do that, it can only read. */
int root_open_layer(const char *path, const struct idrange *ids, struct err *e);

void root_close_sources(struct plan *plan); /* the child has its own copies */

int root_build(struct plan *plan, struct err *e); /* the new root is the working directory then */
int root_enter(struct err *e);
