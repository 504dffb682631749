/* steps - how a sandbox is made: a flat table of named steps, run in order.
 *
 * The first ones run outside, in the jail; the rest inside, in the child that becomes init. A
 * failing step stops the making and its name is put in front of the reason. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "jail/cgroup.h"
#include "jail/idrange.h"
#include "jail/plan.h"
#include "jail/walls.h"
#include "jail/watch.h"

struct jail {
    struct plan          plan;
    struct walls         walls;
    int                  landlock; /* its version, if that wall stands */
    int                  control_fd;
    struct cgroup_limits limits;
    struct idrange       ids;
    struct cgroup        cgroup;        /* if that wall stands */
    struct watch         watch;         /* if it does not */
    bool                 is_watched;    /* inside: no cgroup came */
    unsigned             runs;          /* under way */
    int                  group_fd;      /* the jail's end: groups for runs leave here */
    int                  init_group_fd; /* init's end: its descriptor 3 */
    int                  go_fds[2]; /* a byte: the child's ids are mapped; its end: the jail died,
                                       or seen from here: the new root stands */
    int      disk_fd;               /* what PLAN_ASIDE covers; -1: not asked for yet */
    bool     asked_for_disk;        /* once is enough */
    unsigned layers;                /* attached, ever */
    pid_t    attach_pid; /* who attached the last one, and removes what was before; 0: none */
    int      pid_fd;     /* init */
    pid_t    pid;
};

void jail_init(struct jail *j, int control_fd);
bool jail_has_cgroup(const struct jail *j);
void jail_done(struct jail *j); /* kills init if it lives; leaves nothing behind */

/* Outside: everything up to a running child. The child does not return: it becomes init, or writes
 * an ERROR frame to descriptor 1 and exits. */
int steps_run(struct jail *j, struct err *e);

void steps_print(void);
