/* cgroup_v1 - a hierarchy for each controller, or for several of them, wherever they are mounted.
 *
 * Groups are made below the jail's own in each: a group may have processes and groups, so nothing
 * has to be prepared. Who enters writes to `tasks`: that costs 0.1 ms, where `cgroup.procs` waits
 * 5 to 27 ms for an RCU grace period. */
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "jail/cgroup_file.h"
#include "jail/cgroup_kill.h"
#include "jail/cgroup_version.h"

static const struct {
    const char *name;
    bool        optional;
} controllers[CGROUP_CONTROLLERS] = {
    [CGROUP_MEMORY] = {"memory", false},
    [CGROUP_CPU] = {"cpu", false},
    [CGROUP_PIDS] = {"pids", false},
    [CGROUP_CPUACCT] = {"cpuacct", true}, /* without it, CPU time is what wait4 tells */
};

static int add_hierarchy(struct cgroup_place *place, const struct cgroup_mount *m, const char *own)
{
    char path[PATH_MAX];

    if (cgroup_file_locate(m, own, path, sizeof path) < 0)
        return -1;
    for (int i = 0; i < place->n; i++)
        if (strcmp(place->paths[i], path) == 0)
            return i;
    if (place->n == CGROUP_HIERARCHIES_MAX ||
        str_copy(place->paths[place->n], sizeof place->paths[0], path) < 0)
        return -1;
    return place->n++;
}

static int find_controller(const char *name, const char *mounts, const char *cgroups,
                           struct cgroup_place *place)
{
    autofree char      *own = cgroup_file_own(cgroups, name);
    struct cgroup_mount m;
    int                 found = -1;

    for (int i = 0; own && found < 0 && cgroup_file_mount(mounts, "cgroup", i, &m); i++) {
        if (cgroup_file_has_word(m.options, name, ","))
            found = add_hierarchy(place, &m, own);
        cgroup_mount_done(&m);
    }
    return found;
}

static int find(const char *mounts, const char *own, struct cgroup_place *ret, struct err *e)
{
    *ret = (struct cgroup_place){.version = &cgroup_v1};
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        ret->of[i] = find_controller(controllers[i].name, mounts, own, ret);
        if (ret->of[i] < 0 && !controllers[i].optional)
            return err_set(e, ERR_UNAVAILABLE, "no cgroup v1 controller '%s' is mounted",
                           controllers[i].name);
    }
    return 0;
}

static const struct cgroup_setting settings[] = {
    {CGROUP_MEMORY, "box/memory.limit_in_bytes", VALUE_MEMORY},
    {CGROUP_MEMORY, "box/memory.memsw.limit_in_bytes", VALUE_MEMORY, true}, /* with swap */
    {CGROUP_MEMORY, "init/memory.limit_in_bytes", VALUE_INIT_MEMORY},
    {CGROUP_MEMORY, "init/memory.memsw.limit_in_bytes", VALUE_INIT_MEMORY, true},
    {CGROUP_CPU, "box/cpu.cfs_period_us", VALUE_CPU_PERIOD},
    {CGROUP_CPU, "box/cpu.cfs_quota_us", VALUE_CPU_QUOTA},
    {CGROUP_PIDS, "box/pids.max", VALUE_PIDS},
    {0},
};

#define COUNTER(name) offsetof(struct message_group_ended, name)

static const struct cgroup_counter counters[] = {
    {COUNTER(forks_refused), CGROUP_PIDS, "pids.events", "max", 1, true},
    {COUNTER(oom_kills), CGROUP_MEMORY, "memory.oom_control", "oom_kill", 1, false},
    {COUNTER(peak_bytes), CGROUP_MEMORY, "memory.max_usage_in_bytes", NULL, 1, false},
    {COUNTER(cpu_us), CGROUP_CPUACCT, "cpuacct.usage", NULL, 1000, false},
    {0},
};

const struct cgroup_version cgroup_v1 = {
    .enter = "tasks",
    .settings = settings,
    .counters = counters,
    .find = find,
    .kill = cgroup_kill_listed,
};
