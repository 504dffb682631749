/* cgroup - the limits of a sandbox and the counters of its runs.
 *
 *   <place>/jerboa-SLOT/init        jerboa-init: neither its limits nor its OOM are the code's
 *   <place>/jerboa-SLOT/box         memory, cpu, pids limits of all that runs
 *   <place>/jerboa-SLOT/box/run-N   one a run, command or background server
 *
 * The place is the jail's own cgroup if that will do, and as near to it as can be otherwise: the
 * heads of cgroup_v1.c and cgroup_v2.c tell.
 *
 * Entering is always done by the process itself, by writing "0" to a file that the jail opened: the
 * kernel checks the opener's rights, and moving oneself is never dearer than moving another.
 *
 * Alive is a group whose jail holds a lock: a byte of `cgroup.procs` of the place, in each
 * hierarchy. The kernel lets go of it when the jail ends, however it ends; then the group can be
 * swept, by whoever stands in the same place. (The slot itself tells less: a sandbox in another
 * place may have taken it since.) */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "pipe/message.h"

enum { CGROUP_HIERARCHIES_MAX = 4 };

struct cgroup {
    unsigned slot;
    int      n;                             /* hierarchies in use; controllers may share one */
    int      dirs[CGROUP_HIERARCHIES_MAX];  /* each one's jerboa-SLOT */
    int      locks[CGROUP_HIERARCHIES_MAX]; /* while these are open, nobody sweeps it */
};

struct cgroup_limits {
    int64_t memory_bytes, init_memory_bytes, cpus_milli, pids;
};

/* Finds the place, or tells why there is none; nothing else works before it. */
int         cgroup_find(struct err *e);
bool        cgroup_is_v2(void);     /* also when there is no place */
const char *cgroup_lock_file(void); /* the place's slots, for an ordinary user: see idrange.h */
int         cgroup_find_in(const char *mounts, const char *own,
                           struct err *e); /* the texts of /proc/self/mountinfo and /proc/self/cgroup */

/* For root, once a boot, on v1: an ordinary user gets a cgroup of his own in each hierarchy. On v2
 * systemd does that. */
int cgroup_delegate(uid_t uid, struct err *e);

/* Makes the three levels; what a dead sandbox left under the same slot is removed first. */
int  cgroup_make(unsigned slot, const struct cgroup_limits *limits, struct cgroup *ret,
                 struct err *e);
void cgroup_remove(struct cgroup *c); /* kills what is left inside */
void cgroup_remove_box(
    const struct cgroup *c); /* if no run is left; fills the wait for init's end */

/* Descriptors in which "0" is to be written, one a hierarchy; returns how many. */
int cgroup_open_init(const struct cgroup *c, int fds[CGROUP_HIERARCHIES_MAX], struct err *e);
int cgroup_make_run(const struct cgroup *c, const struct cgroup_limits *limits, uint32_t run,
                    int fds[CGROUP_HIERARCHIES_MAX], struct err *e);

/* Ends every process of the run, double-forked or not, and reads what the kernel counted. -1: they
 * could not be found, and may live. */
int  cgroup_end_run(const struct cgroup *c, uint32_t run, struct message_group_ended *ret);
void cgroup_remove_run(const struct cgroup *c, uint32_t run); /* one that has ended */
/* Ends every process of a run in which a fork was refused; -1 as above. */
int cgroup_kill_refused(const struct cgroup *c, uint32_t run);

/* Removes the groups of sandboxes whose jail is gone. */
int cgroup_sweep(struct err *e);
