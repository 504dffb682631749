#include "jail/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "confine/ruleset.h"
#include "jail/attach.h"
#include "jail/handover.h"
#include "jail/landlock.h"
#include "jail/leave_out.h"
#include "jail/privilege.h"
#include "jail/redirect.h"
#include "jail/report.h"
#include "jail/root.h"
#include "jail/userns.h"

enum { INIT_GROUP_FD = 3 };

static void __attribute__((noreturn)) run_inside(struct jail *j);

/* ---- outside ---- */

/* Which of the walls that may be missing can stand here. */
static int step_look(struct jail *j, struct err *e)
{
    struct err why = {0};

    TRY(idrange_look(e));
    if (!idrange_is_possible(&why))
        TRY(walls_miss(&j->walls, WALL_UID_RANGE, &why, e));
    if (cgroup_find(&why) < 0)
        TRY(walls_miss(&j->walls, WALL_LIMITS, &why, e));
    j->landlock = ruleset_version(&why);
    if (j->landlock < 0)
        TRY(walls_miss(&j->walls, WALL_LANDLOCK, &why, e));
    if (j->plan.host_network)
        walls_waive(&j->walls, WALL_NETWORK, "--network host");
    return 0;
}

/* It, and all that comes of it: before a server that may be protected, and before what else its
 * user runs. Who may not raise it goes on: it is a wish. */
static int step_offer(struct jail *j, struct err *e)
{
    static const char file[] = "/proc/self/oom_score_adj", score[] = "500";
    autofree char    *text = NULL;

    (void)j;
    (void)e;
    if (file_read_text(AT_FDCWD, file, 64, &text, NULL) == 0 && atoi(text) < atoi(score))
        file_write_text(AT_FDCWD, file, score, NULL);
    return 0;
}

bool jail_has_cgroup(const struct jail *j)
{
    return !j->walls.gaps[WALL_LIMITS].missing;
}

static bool has_range(const struct jail *j)
{
    return !j->walls.gaps[WALL_UID_RANGE].missing;
}

static int step_ids(struct jail *j, struct err *e)
{
    const char *own_file = jail_has_cgroup(j) ? cgroup_lock_file() : NULL;

    TRY(idrange_take(&j->ids, has_range(j) ? idrange_file : own_file, e));
    if (jail_leaves_out("own", "uids"))
        j->ids.uid = j->ids.gid -= j->ids.slot * IDRANGE_SIZE;
    return 0;
}

static int step_sources(struct jail *j, struct err *e)
{
    return has_range(j) ? root_open_sources(&j->plan, &j->ids, e) : 0;
}

static uint64_t own_namespaces(const struct jail *j)
{
    static const struct {
        const char *name;
        uint64_t    flag;
    } table[] = {{"user", CLONE_NEWUSER}, {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},
                 {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS},  {"network", CLONE_NEWNET}};
    uint64_t flags = 0;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!jail_leaves_out("namespace", table[i].name))
            flags |= table[i].flag;
    return j->plan.host_network ? flags & ~(uint64_t)CLONE_NEWNET : flags;
}

static int step_clone(struct jail *j, struct err *e)
{
    struct clone_args args = {.flags = own_namespaces(j) | CLONE_PIDFD,
                              .pidfd = (uint64_t)(uintptr_t)&j->pid_fd,
                              .exit_signal = SIGCHLD};
    int               ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(e, "socketpair");
    j->group_fd = ends[0], j->init_group_fd = ends[1];
    if (pipe2(j->go_fds, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    j->pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (j->pid < 0)
        return err_sys(e, "clone");
    if (j->pid == 0)
        run_inside(j);
    fd_close(&j->init_group_fd);
    fd_close(&j->go_fds[0]);
    root_close_sources(&j->plan);
    return 0;
}

static int step_map(struct jail *j, struct err *e)
{
    if (!jail_leaves_out("namespace", "user"))
        TRY(userns_map(j->pid, j->ids.uid, j->ids.gid, j->ids.count, e));
    if (fd_write_all(j->go_fds[1], "", 1) < 0) /* its end stays open: step_bind watches it */
        return err_sys(e, "let the child go");
    return 0;
}

/* While the child builds its root: two processors, two halves of the work. */
static int step_cgroup(struct jail *j, struct err *e)
{
    struct err why = {0};

    j->limits = (struct cgroup_limits){.memory_bytes = j->plan.memory_bytes,
                                       .init_memory_bytes = j->plan.init_memory_bytes,
                                       .cpus_milli = j->plan.cpus_milli,
                                       .pids = j->plan.pids};
    if (jail_has_cgroup(j) && cgroup_make(j->ids.slot, &j->limits, &j->cgroup, &why) < 0)
        TRY(walls_miss(&j->walls, WALL_LIMITS, &why, e));
    if (!jail_has_cgroup(j))
        watch_init(&j->watch, j->pid, j->pid_fd, j->go_fds[1], j->plan.memory_bytes);
    return 0;
}

static int step_tell(struct jail *j, struct err *e)
{
    autojson json_t *list = walls_json(&j->walls);

    if (j->plan.strict)
        TRY(walls_check(&j->walls, e));
    if (report_walls(j->control_fd, list) < 0)
        return err_sys(e, "control socket");
    return 0;
}

/* The child waits for it; without descriptors it goes on without. */
static int step_admit(struct jail *j, struct err *e)
{
    int fds[CGROUP_HIERARCHIES_MAX] = {-1}, n = 0, r = 0;

    if (jail_has_cgroup(j))
        n = cgroup_open_init(&j->cgroup, fds, e);
    TRY(n);
    if (handover_send(j->group_fd, 0, fds, n) < 0 && errno != EPIPE) /* dead, and has said why */
        r = err_sys(e, "hand init's cgroup over");
    while (n > 0)
        fd_close(&fds[--n]);
    return r;
}

/* ---- inside ---- */

static int step_wait(struct jail *j, struct err *e)
{
    char go;

    fd_close(&j->go_fds[1]); /* the jail's ends: while we had them, its death would not be seen */
    fd_close(&j->group_fd);
    if (read(j->go_fds[0], &go, 1) != 1)
        return err_set(e, ERR_CANCELLED, "the jail is gone");
    return 0;
}

static int step_enter_cgroup(struct jail *j, struct err *e)
{
    int fds[CGROUP_HIERARCHIES_MAX], n = handover_receive(j->init_group_fd, fds);

    if (n < 0)
        return err_set(e, ERR_CANCELLED, "the jail is gone");
    for (int i = 0; i < n; i++)
        if (write(fds[i], "0", 1) != 1)
            return err_sys(e, "enter cgroup");
    j->is_watched = n == 0;
    if (j->is_watched) /* init counts too */
        TRY(privilege_limit_processes(j->plan.pids + 1, e));
    return 0; /* step_descriptors closes them */
}

static int step_hide_cgroup(struct jail *j, struct err *e)
{
    (void)j;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return err_sys(e, "unshare");
    return 0;
}

static int step_become_root(struct jail *j, struct err *e)
{
    /* An ordinary user's child keeps its groups: see userns_map. */
    if (setsid() < 0 || (has_range(j) && setgroups(0, NULL) < 0) || setresgid(0, 0, 0) < 0 ||
        setresuid(0, 0, 0) < 0)
        return err_sys(e, "become uid 0 of the range");
    if (!jail_leaves_out("namespace", "uts") && sethostname("sandbox", 7) < 0)
        return err_sys(e, "set the host name");
    return 0;
}

/* A server may want port 80, as in every container, and nothing in a namespace of its own is to be
 * kept from it. Where /proc/sys is read-only, it does without. */
static void open_low_ports(void)
{
    autofd int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)fd_write_all(fd, "0", 1);
}

static int step_loopback(struct jail *j, struct err *e)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    autofd int   fd = -1;

    if (j->plan.host_network)
        return 0;
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        return err_sys(e, "bring lo up");
    open_low_ports();
    return 0;
}

static int step_redirect(struct jail *j, struct err *e)
{
    const struct plan *plan = &j->plan;

    return plan->egress ? redirect_to_init(plan->host_loopback, plan->n_host_loopback, e) : 0;
}

static int step_own_sources(struct jail *j, struct err *e)
{
    return has_range(j) ? 0 : root_open_sources(&j->plan, &j->ids, e);
}

static int step_build(struct jail *j, struct err *e)
{
    return root_build(&j->plan, e);
}

/* By the socket on which cgroups come the other way; also when there is none, so that the jail does
 * not wait for it. */
static int step_hand_out(struct jail *j, struct err *e)
{
    int disk = -1;

    for (size_t i = 0; i < j->plan.n_entries; i++)
        if (j->plan.entries[i].kind == PLAN_ASIDE)
            disk = j->plan.entries[i].source_fd;
    if (handover_send(j->init_group_fd, 0, &disk, disk < 0 ? 0 : 1) < 0)
        return err_sys(e, "hand the disk out");
    return 0;
}

static int step_pivot(struct jail *j, struct err *e)
{
    (void)j;
    return root_enter(e);
}

static int step_keyring(struct jail *j, struct err *e)
{
    (void)j, (void)e;
    privilege_leave_keys();
    return 0;
}

static int step_resources(struct jail *j, struct err *e)
{
    return privilege_limit_resources(j->plan.fds, e);
}

static int step_capabilities(struct jail *j, struct err *e)
{
    (void)j;
    return privilege_drop_capabilities(e);
}

static int step_no_new_privileges(struct jail *j, struct err *e)
{
    (void)j;
    return privilege_forbid_new(e);
}

static int step_landlock(struct jail *j, struct err *e)
{
    return j->landlock < 0 ? 0 : landlock_restrict(j->landlock, &j->plan, e);
}

/* After the last change of credentials, which would clear it. The jail may have died before: then
 * the other end of `go` is closed. */
static int step_bind(struct jail *j, struct err *e)
{
    char byte;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_sys(e, "PDEATHSIG");
    if (fd_set_nonblock(j->go_fds[0], true) < 0)
        return err_sys(e, "look after the jail");
    if (read(j->go_fds[0], &byte, 1) == 0 || errno != EAGAIN)
        return err_set(e, ERR_CANCELLED, "the jail is gone");
    return 0;
}

/* 0 and 1 are the pipe, 2 goes nowhere, 3 brings cgroups; nothing else crosses the exec. */
static int step_descriptors(struct jail *j, struct err *e)
{
    autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup2(null, 2) < 0)
        return err_sys(e, "redirect stderr");
    if (j->init_group_fd == INIT_GROUP_FD ? fcntl(INIT_GROUP_FD, F_SETFD, 0) < 0
                                          : dup2(j->init_group_fd, INIT_GROUP_FD) < 0)
        return err_sys(e, "pass the cgroup socket");
    fd_close(&null);
    if (close_range(INIT_GROUP_FD + 1, ~0U, 0) < 0)
        return err_sys(e, "close what init does not need");
    return 0;
}

static int step_filter(struct jail *j, struct err *e)
{
    if (j->is_watched)
        TRY(privilege_filter_unseen(e));
    return privilege_filter_calls(e);
}

static int step_exec(struct jail *j, struct err *e)
{
    static const struct {
        int         sys;
        const char *fix;
    } causes[] = {
        {ENOENT,
         "it wants a loader that is not there: link it with musl-gcc -static, as make does"},
        {ENOEXEC, "it is no program for this machine: build or install Jerboa again"},
        {EACCES, "put it where every user may execute it, on no noexec mount"},
    };
    const char *argv[] = {"jerboa-init", j->plan.egress ? "egress" : NULL, NULL}, *env[] = {NULL};

    execve(j->plan.init, (char *const *)argv, (char *const *)env);
    err_sys(e, "%s", j->plan.init);
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (causes[i].sys == e->sys)
            err_append(e, causes[i].fix);
    return -1;
}

/* ---- the table ---- */

enum side { OUTSIDE, INSIDE };

static const struct step {
    enum side   side;
    enum wall   wall; /* that it builds and that may not be missing; several: the first */
    const char *name;
    int (*run)(struct jail *j, struct err *e);
    const char *why;
} steps[] = {
    {OUTSIDE, WALL_NONE, "look around", step_look,
     "which of the walls that may be missing can stand"},
    {OUTSIDE, WALL_NONE, "offer to the OOM killer", step_offer,
     "when the machine has no memory left, sandboxes go before others"},
    {OUTSIDE, WALL_NONE, "take uid range", step_ids,
     "a host uid that owns nothing, another in each sandbox"},
    {OUTSIDE, WALL_ROOT, "open sources", step_sources,
     "host paths are looked up here and never again"},
    {OUTSIDE, WALL_USER, "clone", step_clone, "user, mount, pid, net, ipc, uts namespaces"},
    {OUTSIDE, WALL_USER, "map ids", step_map, "uid 0 inside is the range's first outside"},
    {OUTSIDE, WALL_NONE, "make cgroup", step_cgroup,
     "while the child builds; it waits for it below"},
    {OUTSIDE, WALL_NONE, "tell walls", step_tell, "before anything runs; a strict plan ends here"},
    {OUTSIDE, WALL_NONE, "let init in", step_admit, "into its cgroup; it enters by itself"},
    {INSIDE, WALL_NONE, "wait for ids", step_wait, "before that it is nobody"},
    {INSIDE, WALL_USER, "become root", step_become_root,
     "of its own namespace, for the steps that follow"},
    {INSIDE, WALL_NETWORK, "bring up loopback", step_loopback, "the only network there is"},
    {INSIDE, WALL_NETWORK, "redirect", step_redirect,
     "what code connects to and looks up reaches init"},
    {INSIDE, WALL_ROOT, "open own sources", step_own_sources,
     "an ordinary user's: he may only here"},
    {INSIDE, WALL_MOUNT, "build root", step_build, "the entries of the plan, in a fresh tmpfs"},
    {INSIDE, WALL_ROOT, "pivot", step_pivot, "after this no host path can be named"},
    {INSIDE, WALL_NONE, "hand out the disk", step_hand_out,
     "to the jail, for layers; code cannot name it; not before there is a root to mount them in"},
    {INSIDE, WALL_NONE, "enter cgroup", step_enter_cgroup,
     "limits stand before the first foreign instruction"},
    {INSIDE, WALL_CGROUP_NAMESPACE, "hide cgroup", step_hide_cgroup,
     "a cgroup namespace, whose root it is"},
    {INSIDE, WALL_NONE, "own keyring", step_keyring, "keys of the user's session stay outside"},
    {INSIDE, WALL_NONE, "limit resources", step_resources,
     "descriptors, size of a file, core dumps, locked memory"},
    {INSIDE, WALL_CAPABILITIES, "drop capabilities", step_capabilities,
     "all, and the way back through exec"},
    {INSIDE, WALL_NO_NEW_PRIVILEGES, "no new privileges", step_no_new_privileges,
     "setuid files mean nothing"},
    {INSIDE, WALL_NONE, "landlock", step_landlock,
     "a second lock on files, where the kernel has one"},
    {INSIDE, WALL_NONE, "bind to the jail", step_bind, "if the jail dies, init dies"},
    {INSIDE, WALL_NONE, "close descriptors", step_descriptors,
     "only the pipe and the cgroup socket remain"},
    {INSIDE, WALL_SECCOMP, "filter system calls", step_filter, "last: it forbids calls used above"},
    {INSIDE, WALL_NONE, "start init", step_exec, "pid 1"},
};

enum { STEPS = sizeof steps / sizeof steps[0] };

static int run_side(struct jail *j, enum side side, struct err *e)
{
    for (size_t i = 0; i < STEPS; i++)
        if (steps[i].side == side && !jail_leaves_out("step", steps[i].name) &&
            steps[i].run(j, e) < 0) {
            walls_explain(steps[i].wall, e);
            return err_wrap(e, "step '%s'", steps[i].name);
        }
    return 0;
}

static void run_inside(struct jail *j)
{
    struct err e = {0};

    run_side(j, INSIDE, &e);
    report_error(1, 0, &e);
    _exit(1);
}

int steps_run(struct jail *j, struct err *e)
{
    return run_side(j, OUTSIDE, e);
}

void steps_print(void)
{
    for (size_t i = 0; i < STEPS; i++)
        printf("%-8s %-20s %s\n", steps[i].side == OUTSIDE ? "outside" : "inside", steps[i].name,
               steps[i].why);
}

/* ---- the whole ---- */

void jail_init(struct jail *j, int control_fd)
{
    *j = (struct jail){.control_fd = control_fd,
                       .ids.lock_fd = -1,
                       .group_fd = -1,
                       .init_group_fd = -1,
                       .go_fds = {-1, -1},
                       .disk_fd = -1,
                       .pid_fd = -1};
    j->watch.proc_fd = j->watch.disk_fd = -1;
}

void jail_done(struct jail *j)
{
    attach_end(j);
    if (j->pid > 0) {
        kill(j->pid, SIGKILL); /* ours until waited for, so the number is right */
        cgroup_remove_box(&j->cgroup);
        waitpid(j->pid, NULL, 0);
    }
    if (j->cgroup.n > 0)
        cgroup_remove(&j->cgroup);
    watch_done(&j->watch);
    idrange_release(&j->ids); /* last: until then nobody else may use the slot */
}
