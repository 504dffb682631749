#include "jail/walls.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "jail/cgroup.h"

static const struct {
    const char *name, *what;
    bool        keeps; /* never optional */
} table[WALLS] = {
    [WALL_USER] = {"user-namespace", "root inside has no rights outside", true},
    [WALL_MOUNT] = {"mount-namespace", "mounts of its own", true},
    [WALL_PID] = {"pid-namespace", "sees and signals its own processes only", true},
    [WALL_NETWORK] = {"network-namespace", "a loopback of its own and no other device", true},
    [WALL_IPC] = {"ipc-namespace", "shared memory and semaphores of its own", true},
    [WALL_UTS] = {"uts-namespace", "a host name of its own", true},
    [WALL_CGROUP_NAMESPACE] = {"cgroup-namespace", "does not see where its cgroup lies", true},
    [WALL_ROOT] = {"root", "pivot_root into a fresh file system", true},
    [WALL_CAPABILITIES] = {"capabilities", "none, and no way back to any", true},
    [WALL_NO_NEW_PRIVILEGES] = {"no-new-privileges", "setuid files mean nothing", true},
    [WALL_SECCOMP] = {"seccomp", "an allow-list of system calls", true},
    [WALL_LIMITS] = {"cgroup", "memory, CPU and processes are limited by the kernel", false},
    [WALL_UID_RANGE] = {"uid-range", "host uids that own nothing, others in each sandbox", false},
    [WALL_LANDLOCK] =
        {"landlock",
         "a second lock on files and abstract sockets; around jerboa-fetch the only one on files",
         false},
};

/* ---- what to do ---- */

/* The one command that gives an ordinary user cgroups: see cgroup_delegate and cgroup_v2.c. */
static char *delegate_command(void)
{
    char    self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (cgroup_is_v2())
        return str_format("start it from: systemd-run --user --scope -p Delegate=yes sh");
    self[n < 0 ? 0 : n] = '\0';
    autofree char *quoted = str_quote(n < 0 ? "jerboa-jail" : self);
    return str_format("as root: %s delegate %u", quoted, (unsigned)getuid());
}

/* The whole number in a file below /proc/sys; -1 when there is none. */
static long sysctl_value(const char *name)
{
    autofree char *path = str_format("/proc/sys/%s", name), *text = NULL;

    if (file_read_text(AT_FDCWD, path, 64, &text, NULL) < 0)
        return -1;
    return strtol(text, NULL, 10);
}

/* The kind of namespace of which none may be made; the caller frees; NULL: of each, some may. */
static char *namespaces_command(void)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts"};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        autofree char *name = str_format("user/max_%s_namespaces", kinds[i]);
        if (sysctl_value(name) == 0)
            return str_format(
                "%s namespaces are forbidden; as root: sysctl -w user.max_%s_namespaces=10000",
                kinds[i], kinds[i]);
    }
    return NULL;
}

/* What is known of failures, the first that fits: `sys` is the errno (0: any), `sysctl` a switch of
 * the kernel that must have `value` (NULL: none). */
static const struct cause {
    enum wall   wall; /* WALL_NONE: any */
    int         sys;
    const char *sysctl;
    long        value;
    const char *fix;
} causes[] = {
    {WALL_USER, ENOSPC, NULL, 0,
     "too many namespaces; end some sandboxes or raise the limits below /proc/sys/user"},
    {WALL_CGROUP_NAMESPACE, ENOSPC, NULL, 0,
     "cgroup namespaces are used up; as root: sysctl -w user.max_cgroup_namespaces=10000"},
    {WALL_USER, EPERM, "kernel/unprivileged_userns_clone", 0,
     "user namespaces are root's alone; as root: sysctl -w kernel.unprivileged_userns_clone=1"},
    {WALL_NONE, EPERM, "kernel/apparmor_restrict_unprivileged_userns", 1,
     "AppArmor restricts user namespaces; as root: sysctl -w "
     "kernel.apparmor_restrict_unprivileged_userns=0"},
    {WALL_NONE, EACCES, "kernel/apparmor_restrict_unprivileged_userns", 1,
     "AppArmor restricts user namespaces; as root: sysctl -w "
     "kernel.apparmor_restrict_unprivileged_userns=0"},
    {WALL_USER, EPERM, NULL, 0,
     "user namespaces are forbidden here: leave the container or chroot, or let it make them"},
    {WALL_USER, EINVAL, NULL, 0, "this kernel is built without one of the namespaces: use another"},
    {WALL_MOUNT, EPERM, NULL, 0,
     "the kernel refuses mounts here: in a container, uncover its /proc (docker: --security-opt "
     "systempaths=unconfined)"},
    {WALL_LIMITS, EROFS, NULL, 0,
     "as root: sh -c 'findmnt -nro TARGET -t cgroup,cgroup2 | xargs -n1 mount -o "
     "remount,bind,rw'"}, /* one word for sudo, with both sides of the pipe */
    {WALL_LIMITS, ENODEV, NULL, 0, "mount the cgroup controllers memory, cpu and pids"},
    {WALL_LANDLOCK, 0, NULL, 0, "use Linux 5.19 or newer with Landlock among its security modules"},
    {WALL_NONE, ENOSYS, NULL, 0,
     "sandboxes need Linux 5.12 or newer, and no filter that hides its system calls"},
};

/* The caller frees; NULL: nothing is known. */
static char *find_fix(enum wall wall, int sys)
{
    if (wall == WALL_LIMITS && (sys == EACCES || sys == EPERM))
        return delegate_command();
    if (wall == WALL_UID_RANGE)
        return str_format("%s", geteuid() == 0 ? "run Jerboa outside of this container"
                                               : "run Jerboa as root");
    char *command = wall == WALL_USER && sys == ENOSPC ? namespaces_command() : NULL;
    if (command)
        return command;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        const struct cause *c = &causes[i];
        if ((c->wall == WALL_NONE || c->wall == wall) && (c->sys == 0 || c->sys == sys) &&
            (!c->sysctl || sysctl_value(c->sysctl) == c->value))
            return str_format("%s", c->fix);
    }
    return NULL;
}

void walls_explain(enum wall wall, struct err *e)
{
    autofree char *fix = find_fix(wall, e->sys);

    if (fix)
        err_append(e, fix);
}

/* ---- which stand ---- */

int walls_miss(struct walls *w, enum wall wall, const struct err *why, struct err *e)
{
    struct wall_gap *gap = &w->gaps[wall];
    autofree char   *fix = find_fix(wall, why->sys);

    assert(!table[wall].keeps);
    if (!err_is_lasting(why)) {
        if (e)
            *e = *why;
        return err_wrap(e, "the wall '%s' cannot be built just now", table[wall].name);
    }
    gap->missing = true;
    str_copy(gap->why, sizeof gap->why, why->msg);
    str_copy(gap->fix, sizeof gap->fix, fix ? fix : ""); /* half a command is none */
    return 0;
}

void walls_waive(struct walls *w, enum wall wall, const char *option)
{
    w->gaps[wall].waived = true;
    snprintf(w->gaps[wall].why, sizeof w->gaps[wall].why, "%s leaves it out", option);
}

json_t *walls_json(const struct walls *w)
{
    json_t *list = json_array();

    for (int i = WALL_NONE + 1; i < WALLS; i++) {
        const struct wall_gap *gap = &w->gaps[i];
        bool                   on = !gap->missing && !gap->waived;
        json_t *object = json_pack("{s:s, s:s, s:b, s:b}", "name", table[i].name, "what",
                                   table[i].what, "keeps", table[i].keeps, "on", on);
        if (!on)
            json_object_set_new(object, "why", json_text(gap->why, strlen(gap->why)));
        if (gap->fix[0])
            json_object_set_new(object, "fix", json_text(gap->fix, strlen(gap->fix)));
        if (!object || json_array_append_new(list, object) < 0)
            abort();
    }
    return list;
}

/* The command must be whole or is left out, and of the reason its end. */
static int refuse(enum wall wall, const struct wall_gap *gap, struct err *e)
{
    enum { TOGETHER = 165 }; /* what the rest of the sentence leaves */
    const char *fix = strlen(gap->fix) <= TOGETHER ? gap->fix : "";
    size_t      why = strlen(gap->why), room = TOGETHER - strlen(fix);
    const char *cut = why > room ? "..." : "", *tail = gap->why + (why > room ? why - room : 0);

    return err_set(e, ERR_UNAVAILABLE, "--strict: the wall '%s' is missing: %s%s%s%s",
                   table[wall].name, cut, tail, *fix ? ": " : "", fix);
}

int walls_check(const struct walls *w, struct err *e)
{
    for (int i = WALL_NONE + 1; i < WALLS; i++)
        if (w->gaps[i].missing)
            return refuse((enum wall)i, &w->gaps[i], e);
    return 0;
}
