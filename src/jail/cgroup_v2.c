/* cgroup_v2 - one hierarchy for all controllers.
 *
 * On v2 a group has processes or groups with limits, not both (only the root of the machine may).
 * The jail's own group has at least the jail and its server, so the question is where the groups of
 * a sandbox can stand. The answer is the first of these that holds, for root and users alike:
 *
 *   1. The own group is marked as delegated (systemd: Delegate=yes) and has all controllers.
 *      Then it is ours to arrange: its processes move into a group `jerboa-host`, sandboxes
 *      stand beside that. Limits that somebody put on the unit hold for them too. (systemd's
 *      manager of a user delegates, but does not mark.)
 *   2. The nearest group on the way up that is ours to write and that has no processes.
 *      systemd's slices have none: for a user that is `app.slice` of his manager, for root the
 *      slice of his session. Nobody's processes move but our sandboxes'. systemd does not remove
 *      groups that it does not know, and the kernel does not let it take a controller away that
 *      a group below uses.
 *   3. The own group, if it is ours to write: a container, whose root is all there is; a group
 *      that root made over. As 1.
 *
 * A user's login session (session-N.scope) is root's, and the kernel moves nothing across what the
 * user does not own: there `systemd-run --user --scope` is the way in.
 *
 * memory.oom.group stays 0, as v1 knows nothing else: a script whose child was killed goes on, and
 * the verdict is about how it ended. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cgroup_file.h"
#include "base/fd.h"
#include "base/str.h"
#include "jail/cgroup_kill.h"
#include "jail/cgroup_version.h"

static const char *const needed[] = {"memory", "pids", "cpu", NULL};
static const char        enable_needed[] = "+memory +pids +cpu";
static const char        host[] = "jerboa-host"; /* for the processes that a group had */

/* ---- one group ---- */

/* The first needed controller that the file (cgroup.controllers, cgroup.subtree_control) does not
 * list; NULL: all are there. -1: it cannot be read just now. */
static int find_missing(int dir, const char *file, const char **ret, struct err *e)
{
    autofree char *text = NULL;
    struct err     why = {0};

    *ret = needed[0];
    if (file_read_text(dir, file, 1 << 12, &text, &why) < 0) {
        if (e)
            *e = why;
        return err_is_lasting(&why) ? 0 : -1;
    }
    for (const char *const *name = needed; *name; name++)
        if (!cgroup_file_has_word(text, *name, " \n")) {
            *ret = *name;
            return 0;
        }
    *ret = NULL;
    return 0;
}

/* Whether we may arrange it. Root does not stand in what another user owns: the slots of sandboxes
 * are each user's own (idrange.h), and that user could take the limits away. */
static bool may_write(int dir)
{
    static const char *const files[] = {".", "cgroup.procs", "cgroup.subtree_control"};
    struct stat              st;

    if (fstat(dir, &st) < 0)
        return false;
    if (st.st_uid != geteuid()) {
        errno = EACCES;
        return false;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (faccessat(dir, files[i], W_OK, AT_EACCESS) < 0)
            return false;
    return true;
}

/* Lets the groups below have limits. EBUSY: it has processes. ENOENT: it lacks one itself. */
static int enable(int dir)
{
    const char *lacking;

    if (find_missing(dir, "cgroup.subtree_control", &lacking, NULL) == 0 && !lacking)
        return 0;
    return cgroup_file_put(dir, "cgroup.subtree_control", enable_needed, NULL);
}

/* systemd marks what it delegated. */
static bool is_delegated(int dir)
{
    char mark[4] = "";

    return (fgetxattr(dir, "user.delegate", mark, sizeof mark) == 1 ||
            fgetxattr(dir, "trusted.delegate", mark, sizeof mark) == 1) &&
           mark[0] == '1';
}

/* ---- making room in a group ---- */

static int move_members(int dir, struct err *e)
{
    autofree char *text = NULL;
    char          *save = NULL, file[64];

    snprintf(file, sizeof file, "%s/cgroup.procs", host);
    TRY(file_read_text(dir, "cgroup.procs", 64 << 20, &text, e));
    for (char *pid = strtok_r(text, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
        if (strcmp(pid, "0") == 0)
            continue; /* of a pid namespace that we do not see */
        if (cgroup_file_put(dir, file, pid, NULL) < 0 && errno != ESRCH)
            return err_sys(e, "move process %s to %s", pid, host);
    }
    return 0;
}

/* Another jail may be doing the same, and members may fork meanwhile: again until it holds. */
static int make_room(int dir, struct err *e)
{
    const char *lacking;

    TRY(find_missing(dir, "cgroup.controllers", &lacking, e));
    if (lacking)
        return err_set(e, ERR_UNAVAILABLE,
                       "it has no controller '%s' (systemd gives it with Delegate=memory pids cpu)",
                       lacking);
    if (mkdirat(dir, host, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make cgroup %s", host);
    for (int round = 0; round < 100; round++) {
        TRY(move_members(dir, e));
        if (enable(dir) == 0)
            return 0;
        if (errno != EBUSY)
            break;
    }
    return err_sys(e, "give controllers to the groups below");
}

/* ---- where sandboxes stand ---- */

/* Shortens path by its last name; false when it is the mount point. */
static bool go_up(char *path, const char *point)
{
    char *slash = strrchr(path, '/');

    if (!slash || (size_t)(slash - path) < strlen(point))
        return false;
    *slash = '\0';
    return true;
}

static int open_group(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Lets the groups below path have limits. Its own controllers come from above: those who may, get
 * them there first. -1: it has processes, or is not ours. */
static int open_up(const char *point, const char *path, struct err *e)
{
    autofd int  dir = open_group(path);
    char        above[PATH_MAX];
    const char *lacking;

    if (dir < 0 || !may_write(dir))
        return err_sys(e, "%s", path);
    if (str_copy(above, sizeof above, path) < 0)
        return err_set(e, ERR_LIMIT, "the path of a cgroup is too long");
    TRY(find_missing(dir, "cgroup.controllers", &lacking, e));
    if (lacking && go_up(above, point))
        TRY(open_up(point, above, e));
    return enable(dir) < 0 ? err_sys(e, "%s", path) : 0;
}

/* A group that only cannot be looked at just now is not passed by. */
static int walk_up(const char *point, char *path, struct err *e)
{
    do
        if (open_up(point, path, e) == 0)
            return 0;
    while (err_is_lasting(e) && go_up(path, point));
    return -1;
}

static int settle(const char *point, char path[PATH_MAX], struct err *e)
{
    autofd int  dir = -1;
    char        above[PATH_MAX];
    const char *name = strrchr(path, '/');
    struct err  why = {0};

    if (name && strcmp(name + 1, host) == 0)
        go_up(path, point); /* a jail before us made room */
    dir = open_group(path);
    if (dir < 0)
        return err_sys(e, "%s", path);
    if (is_delegated(dir) && may_write(dir) && make_room(dir, &why) == 0)
        return 0;
    memcpy(above, path, PATH_MAX);
    if (err_is_lasting(&why) && walk_up(point, above, &why) == 0) {
        memcpy(path, above, PATH_MAX);
        return 0;
    }
    if (!err_is_lasting(&why)) {
        if (e)
            *e = why;
        return -1;
    }
    if (!may_write(dir))
        return err_sys(e, "%s", path);
    if (make_room(dir, e) < 0)
        return err_wrap(e, "%.100s", path);
    return 0;
}

/* On a machine with v1 the hierarchy is there as well, but empty-handed. */
static int check_controllers(const char *point, struct err *e)
{
    autofd int  dir = open_group(point);
    const char *lacking = needed[0];
    struct err  why = {0};

    if (dir < 0)
        err_sys(&why, "%s", point);
    else
        find_missing(dir, "cgroup.controllers", &lacking, &why);
    if (!err_is_lasting(&why)) {
        if (e)
            *e = why;
        return -1;
    }
    return lacking ? cgroup_file_no_controller(e, lacking, "neither v1 nor v2") : 0;
}

static int find(const char *mounts, const char *cgroups, struct cgroup_place *ret, struct err *e)
{
    autofree char      *own = cgroup_file_own(cgroups, "");
    struct cgroup_mount m;
    int                 r;

    if (!own || !cgroup_file_mount(mounts, "cgroup2", 0, &m))
        return cgroup_file_no_controller(e, needed[0], "no mounted hierarchy");
    *ret = (struct cgroup_place){.version = &cgroup_v2, .n = 1, .of = {[CGROUP_CPUACCT] = 0}};
    r = check_controllers(m.point, e);
    if (r == 0 && cgroup_file_locate(&m, own, ret->paths[0], PATH_MAX) < 0)
        r = err_set(e, ERR_LIMIT, "the path of the own cgroup is too long");
    if (r == 0)
        r = settle(m.point, ret->paths[0], e);
    cgroup_mount_done(&m);
    return r;
}

/* ---- ending ---- */

static bool is_populated(int dir)
{
    uint64_t populated = 0;

    return cgroup_file_get(dir, "cgroup.events", "populated", &populated) == 0 && populated;
}

/* Kills the groups below as well. What is forked at the same moment may slip through on some
 * kernels, hence in every round. */
static void kill_group(int dir, const char *path)
{
    for (int round = 0; round < 2000 && is_populated(dir); round++) {
        if (cgroup_file_put(dir, "cgroup.kill", "1", NULL) < 0) { /* before Linux 5.14 */
            cgroup_kill_listed(dir, path);
            return;
        }
        if (round > 0)
            cgroup_kill_pause();
    }
}

/* ---- the tables ---- */

static const struct cgroup_setting settings[] = {
    {CGROUP_MEMORY, "cgroup.subtree_control", .text = enable_needed},
    {CGROUP_MEMORY, "box/cgroup.subtree_control", .text = "+memory +pids"},
    {CGROUP_MEMORY, "box/memory.max", VALUE_MEMORY},
    {CGROUP_MEMORY, "box/memory.swap.max", .text = "0",
     .optional = true}, /* if the kernel can swap */
    {CGROUP_MEMORY, "init/memory.max", VALUE_INIT_MEMORY},
    {CGROUP_MEMORY, "init/memory.swap.max", .text = "0", .optional = true},
    {CGROUP_CPU, "box/cpu.max", VALUE_CPU_QUOTA_PERIOD},
    {CGROUP_PIDS, "box/pids.max", VALUE_PIDS},
    {0},
};

#define COUNTER(name) offsetof(struct message_group_ended, name)

static const struct cgroup_counter counters[] = {
    {COUNTER(forks_refused), CGROUP_PIDS, "pids.events", "max", 1, true},
    {COUNTER(oom_kills), CGROUP_MEMORY, "memory.events", "oom_kill", 1, false},
    {COUNTER(peak_bytes), CGROUP_MEMORY, "memory.peak", NULL, 1, false},
    /* Before Linux 5.19 there is no peak: then at least what it has now. */
    {COUNTER(peak_bytes), CGROUP_MEMORY, "memory.current", NULL, 1, true},
    {COUNTER(cpu_us), CGROUP_CPU, "cpu.stat", "usage_usec", 1, false},
    {0},
};

const struct cgroup_version cgroup_v2 = {
    .enter = "cgroup.procs",
    .settings = settings,
    .counters = counters,
    .find = find,
    .kill = kill_group,
};
