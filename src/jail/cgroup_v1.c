/* cgroup_v1 - a hierarchy for each controller, or for several of them, wherever they are mounted.
 *
 * Groups are made below the jail's own in each: a group may have processes and groups, so nothing
 * has to be prepared. An ordinary user who may not write there makes them in HIERARCHY/jerboa/UID,
 * which root makes over to him once. Who enters writes to `tasks`: that costs 0.1 ms, where
 * `cgroup.procs` waits 5 to 27 ms for an RCU grace period. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cgroup_file.h"
#include "base/fd.h"
#include "base/str.h"
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

/* Where an ordinary user's groups stand, below each hierarchy, once root made it over to him. */
static void user_path(char *ret, size_t size, const char *point, uid_t uid)
{
    snprintf(ret, size, "%s/jerboa/%u", point, (unsigned)uid);
}

/* Below the own cgroup, or with `own` NULL in the user's. */
static int add_hierarchy(struct cgroup_place *place, const struct cgroup_mount *m, const char *own)
{
    char path[PATH_MAX];

    if (!own)
        user_path(path, sizeof path, m->point, getuid());
    else if (cgroup_file_locate(m, own, path, sizeof path) < 0)
        return -1;
    for (int i = 0; i < place->n; i++)
        if (strcmp(place->paths[i], path) == 0)
            return i;
    if (place->n == CGROUP_HIERARCHIES_MAX ||
        str_copy(place->paths[place->n], sizeof place->paths[0], path) < 0)
        return -1;
    return place->n++;
}

enum whose { OWN, USERS };

static int find_controller(const char *name, const char *mounts, const char *cgroups,
                           enum whose whose, struct cgroup_place *place)
{
    autofree char      *own = cgroup_file_own(cgroups, name);
    struct cgroup_mount m;
    int                 found = -1;

    for (int i = 0; own && found < 0 && cgroup_file_mount(mounts, "cgroup", i, &m); i++) {
        if (cgroup_file_has_word(m.options, name, ","))
            found = add_hierarchy(place, &m, whose == OWN ? own : NULL);
        cgroup_mount_done(&m);
    }
    return found;
}

/* Where the mount itself is read-only that is the reason, whoever owns the group: no right to it
 * would help. */
static int check_writable(const char *path, struct err *e)
{
    struct statvfs fs;

    if (access(path, W_OK) == 0)
        return 0;
    if (errno == EACCES)
        errno = statvfs(path, &fs) == 0 && fs.f_flag & ST_RDONLY ? EROFS : EACCES;
    return err_sys(e, "%s", path);
}

static int find_all(const char *mounts, const char *own, enum whose whose, struct cgroup_place *ret,
                    struct err *e)
{
    *ret = (struct cgroup_place){.version = &cgroup_v1};
    for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
        ret->of[i] = find_controller(controllers[i].name, mounts, own, whose, ret);
        if (ret->of[i] < 0 && !controllers[i].optional)
            return cgroup_file_no_controller(e, controllers[i].name, "no v1 hierarchy");
    }
    for (int i = 0; i < ret->n; i++)
        TRY(check_writable(ret->paths[i], e));
    return 0;
}

/* The own cgroups where they may be written, so that limits on them hold; else the user's. All of
 * one kind: slots are locked in one hierarchy (cgroup_lock_file), and in a mixture two sessions
 * with cgroups of their own there would share a user's elsewhere, under the same slot. */
static int find(const char *mounts, const char *own, struct cgroup_place *ret, struct err *e)
{
    struct err why = {0};

    if (find_all(mounts, own, OWN, ret, &why) == 0 ||
        (err_is_lasting(&why) && find_all(mounts, own, USERS, ret, NULL) == 0))
        return 0;
    if (e)
        *e = why;
    return -1;
}

/* ---- making over ---- */

/* The directory, to make groups in; `tasks` and `cgroup.procs`, to come in and to lock. The files
 * with the limits stay root's, so that what root writes there bounds all that the user starts. */
static int give(const char *path, uid_t uid, struct err *e)
{
    static const char *const names[] = {"", "/tasks", "/cgroup.procs"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        autofree char *file = str_format("%s%s", path, names[i]);
        if (chown(file, uid, (gid_t)-1) < 0)
            return err_sys(e, "%s", file);
    }
    return 0;
}

/* One that is there may have been made with a umask that shuts the user out. */
static int make_open(const char *path, struct err *e)
{
    if ((mkdir(path, 0755) < 0 && errno != EEXIST) || chmod(path, 0755) < 0)
        return err_sys(e, "make cgroup %s", path);
    return 0;
}

static int make_over(const char *point, uid_t uid, struct err *e)
{
    char path[PATH_MAX], *slash;

    user_path(path, sizeof path, point, uid);
    slash = strrchr(path, '/');
    *slash = '\0';
    TRY(make_open(path, e));
    *slash = '/';
    TRY(make_open(path, e));
    return give(path, uid, e);
}

static bool is_wanted(const struct cgroup_mount *m)
{
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        if (cgroup_file_has_word(m->options, controllers[i].name, ","))
            return true;
    return false;
}

int cgroup_v1_delegate(const char *mounts, uid_t uid, struct err *e)
{
    struct cgroup_mount m;
    int                 n = 0, r = 0;

    for (int i = 0; r == 0 && cgroup_file_mount(mounts, "cgroup", i, &m); i++) {
        if (is_wanted(&m)) {
            r = make_over(m.point, uid, e);
            n++;
        }
        cgroup_mount_done(&m);
    }
    if (n == 0)
        return err_set(e, ERR_UNAVAILABLE,
                       "no cgroup v1 controller is mounted; on v2 start Jerboa with 'systemd-run "
                       "--user --scope -p Delegate=yes' instead");
    return r;
}

/* ---- the tables ---- */

static const struct cgroup_setting settings[] = {
    {CGROUP_MEMORY, "box/memory.limit_in_bytes", VALUE_MEMORY},
    {CGROUP_MEMORY, "box/memory.memsw.limit_in_bytes", VALUE_MEMORY, true}, /* with swap */
    /* Swap is off, counted or not; groups of runs are made with their parent's. */
    {CGROUP_MEMORY, "box/memory.swappiness", .text = "0", .optional = true},
    {CGROUP_MEMORY, "init/memory.limit_in_bytes", VALUE_INIT_MEMORY},
    {CGROUP_MEMORY, "init/memory.memsw.limit_in_bytes", VALUE_INIT_MEMORY, true},
    {CGROUP_MEMORY, "init/memory.swappiness", .text = "0", .optional = true},
    {CGROUP_CPU, "box/cpu.cfs_period_us", .text = CGROUP_PERIOD},
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
