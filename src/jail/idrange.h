/* idrange - the host uids and gids of one sandbox, and the slot that is its name on the host.
 *
 * Root takes a range of 65,536 that nobody else owns, another for each sandbox. An ordinary user
 * has one uid and one gid to give, his own: the range is a wall that is then missing.
 *
 * A slot is a locked byte of one file: the kernel lets go of it when the jail ends, however it
 * ends, and nothing needs cleaning up. Whoever holds slot N also owns the cgroup called N. Root's
 * file lies below /run, because ranges are the whole machine's; an ordinary user's slots only name
 * cgroups, so his is a file of the cgroup that these stand in. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { IDRANGE_SIZE = 65536, IDRANGE_SLOTS = 4094 };

struct idrange {
    int      lock_fd; /* -1: none */
    unsigned slot;
    uid_t    uid; /* the first of `count` outside; uid 0 inside */
    gid_t    gid;
    unsigned count;
};

/* Looks once whether this process may map foreign ids at all; names of cgroups and locks follow
 * what it finds, so it comes first. -1: that cannot be told, and nothing may be made: root would
 * give his own uid to the code. */
int  idrange_look(struct err *e);
bool idrange_is_possible(struct err *e); /* what it found; if not, the sentence says why */

extern const char idrange_file[]; /* where root's slots are */

/* Any free slot of the file; without a file there is none, and none is needed. */
int  idrange_take(struct idrange *ret, const char *file, struct err *e);
void idrange_release(struct idrange *r);
