/* idrange - a range of 65,536 host uids (and gids) for one sandbox, owned by nobody else.
 *
 * A slot is a locked byte of one file below /run: the kernel lets go of it when the jail ends,
 * however it ends, and nothing needs cleaning up. Whoever holds slot N also owns the cgroup called
 * N, so that a group whose slot can be locked is a dead sandbox's (see cgroup_sweep). */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { IDRANGE_SIZE = 65536 };

struct idrange {
    int      lock_fd; /* -1: none */
    unsigned slot;
    uid_t    base;
};

int  idrange_take(struct idrange *ret, struct err *e);                     /* any free slot */
int  idrange_take_slot(unsigned slot, struct idrange *ret, struct err *e); /* -1 when in use */
void idrange_release(struct idrange *r);
