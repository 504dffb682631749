/* cgroup_version - what differs between cgroup v1 and v2: a table each, behind the one face of
 * cgroup.h. Which limits there are, when counters are read and what they mean is in cgroup.c, the
 * same for both. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "jail/cgroup.h"

enum cgroup_controller {
    CGROUP_MEMORY,
    CGROUP_CPU,
    CGROUP_PIDS,
    CGROUP_CPUACCT, /* v2 counts CPU time without any */
    CGROUP_CONTROLLERS,
};

/* Where the groups of sandboxes are made: one directory a hierarchy. */
struct cgroup_place {
    const struct cgroup_version *version;
    int                          n;
    int  of[CGROUP_CONTROLLERS]; /* an index into paths; -1: not on this machine */
    char paths[CGROUP_HIERARCHIES_MAX][PATH_MAX];
};

#define CGROUP_PERIOD "100000" /* microseconds */

enum cgroup_value {
    VALUE_MEMORY = 1,
    VALUE_INIT_MEMORY,
    VALUE_CPU_QUOTA,        /* a period of CGROUP_PERIOD */
    VALUE_CPU_QUOTA_PERIOD, /* both, in one line */
    VALUE_PIDS,
};

struct cgroup_setting {
    enum cgroup_controller controller;
    const char            *file; /* below jerboa-SLOT */
    enum cgroup_value      value;
    bool                   optional; /* not every kernel has the file */
    const char            *text;     /* instead of a value, what is always written */
};

/* One number of struct message_group_ended; of two rows for the same one the larger counts. */
struct cgroup_counter {
    size_t                 offset;
    enum cgroup_controller controller;
    const char            *file, *word; /* word: in front of the number, or NULL */
    unsigned               divide_by;
    bool                   before_kill; /* ending the group changes it */
};

struct cgroup_version {
    const char                  *enter;    /* the file in which a process writes "0" */
    const struct cgroup_setting *settings; /* of a sandbox, in this order; ends with a 0 */
    const struct cgroup_counter *counters; /* of a run; ends with a 0 */

    /* From the texts of /proc/self/mountinfo and /proc/self/cgroup. ENODEV: the machine does not
     * have the controllers in this version. */
    int (*find)(const char *mounts, const char *own, struct cgroup_place *ret, struct err *e);

    /* Ends all members, and waits until they are gone. `path` is how the group's path ends. */
    void (*kill)(int dir, const char *path);
};

extern const struct cgroup_version cgroup_v1, cgroup_v2;

/* See cgroup_delegate. */
int cgroup_v1_delegate(const char *mounts, uid_t uid, struct err *e);
