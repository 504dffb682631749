/* steps - how a sandbox is made: a flat table of named steps, run in order.
 *
 * The first ones run outside, in the jail; the rest inside, in the child that becomes init. A
 * failing step stops the making and its name is put in front of the reason. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "jail/cgroup.h"
#include "jail/idrange.h"
#include "jail/plan.h"

struct jail {
    struct plan          plan;
    struct cgroup_limits limits;
    struct idrange       ids;
    struct cgroup        cgroup;
    int                  group_fd;      /* the jail's end: groups for runs leave here */
    int                  init_group_fd; /* init's end: its descriptor 3 */
    int                  go_fds[2]; /* a byte: the child's ids are mapped; the end: the jail died */
    int                  pid_fd;    /* init */
    pid_t                pid;
};

void jail_init(struct jail *j);
void jail_done(struct jail *j); /* kills init if it lives; leaves nothing behind */

/* Outside: everything up to a running child. The child does not return: it becomes init, or writes
 * an ERROR frame to descriptor 1 and exits. */
int steps_run(struct jail *j, struct err *e);

void steps_print(void);
