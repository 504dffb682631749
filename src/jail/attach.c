#include "jail/attach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tree.h"
#include "jail/handover.h"
#include "jail/leave_out.h"
#include "jail/root.h"

enum { ANSWER_MS = 10000 };

static const char layers[] = "layers"; /* below the disk: a directory each, named by a number */

/* ---- the child: entering ---- */

static int enter(const struct jail *j, int namespaces, struct err *e)
{
    if (setns(j->pid_fd, namespaces) < 0)
        return err_sys(e, "enter the sandbox's namespaces");
    return 0;
}

/* The layer as a detached mount, and this process in the sandbox. */
static int enter_with(const struct jail *j, const char *source, struct err *e)
{
    bool has_range = j->ids.count > 1;
    int  fd;

    if (has_range) {
        TRY(fd = root_open_layer(source, &j->ids, e));
        TRY(enter(j, CLONE_NEWUSER | CLONE_NEWNS, e));
        if (setgroups(0, NULL) < 0)
            return err_sys(e, "leave the host's groups");
    } else {
        TRY(enter(j, CLONE_NEWUSER, e));
        if (unshare(CLONE_NEWNS) < 0)
            return err_sys(e, "copy the host's mounts");
        TRY(fd = root_open_layer(source, &j->ids, e));
        TRY(enter(j, CLONE_NEWNS, e));
    }
    if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return err_sys(e, "become the sandbox's root");
    return fd;
}

/* After the last change of credentials, which would clear it. */
static int follow(pid_t jail, struct err *e)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return err_sys(e, "PDEATHSIG");
    return getppid() == jail ? 0 : err_set(e, ERR_CANCELLED, "the jail is gone");
}

/* ---- the child: the overlay. Paths are relative to the disk. ---- */

struct overlay {
    char dir[32], lower[48], upper[48], work[48];
};

static struct overlay name_overlay(unsigned number)
{
    struct overlay o;

    snprintf(o.dir, sizeof o.dir, "%s/%u", layers, number);
    snprintf(o.lower, sizeof o.lower, "%s/lower", o.dir);
    snprintf(o.upper, sizeof o.upper, "%s/upper", o.dir);
    snprintf(o.work, sizeof o.work, "%s/work", o.dir);
    return o;
}

static int make_dirs(const struct overlay *o, struct err *e)
{
    const char *const dirs[] = {layers, o->dir, o->lower, o->upper, o->work};

    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++)
        if (mkdir(dirs[i], 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make a place for the layer on the sandbox's disk");
    return 0;
}

/* Where an overlay notes that a directory of the layer was removed. tmpfs has such attributes since
 * Linux 6.6; without them all else works, but such a directory cannot be made anew. 1: it has. */
static int find_attributes(const struct overlay *o, struct err *e)
{
    if (setxattr(o->upper, "user.jerboa", "", 0, 0) == 0)
        return removexattr(o->upper, "user.jerboa") < 0 ? err_sys(e, "remove an attribute") : 1;
    return errno == EOPNOTSUPP ? 0 : err_sys(e, "set an attribute on the sandbox's disk");
}

/* Behind the error stands what the kernel has to say, if anything: "e overlay: …". */
static int fail_with_log(int fs_fd, const char *what, struct err *e)
{
    char    text[160];
    int     sys = errno;
    ssize_t n = read(fs_fd, text, sizeof text - 1);

    text[n < 0 ? 0 : n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    errno = sys;
    err_sys(e, "%s", what);
    if (n > 2)
        err_append(e, text + 2);
    return -1;
}

static int open_overlay(struct err *e)
{
    int fd = fsopen("overlay", FSOPEN_CLOEXEC);

    if (fd < 0 && errno == ENODEV) /* the kernel has asked for its module, in vain */
        return err_set(e, ERR_UNAVAILABLE,
                       "this kernel has no overlay file system, which layers of dependencies "
                       "need: as root: modprobe overlay");
    return fd < 0 ? err_sys(e, "open an overlay") : fd;
}

/* `userxattr`, or what was removed could not be noted in a user namespace. */
static int mount_overlay(const struct overlay *o, bool has_attributes, struct err *e)
{
    const struct {
        unsigned    command;
        const char *key, *value;
    } settings[] = {
        {FSCONFIG_SET_STRING, "source", "layer"},    {FSCONFIG_SET_STRING, "lowerdir", o->lower},
        {FSCONFIG_SET_STRING, "upperdir", o->upper}, {FSCONFIG_SET_STRING, "workdir", o->work},
        {FSCONFIG_SET_FLAG, "userxattr", NULL},
    };
    autofd int fs = open_overlay(e);
    int        fd;

    if (fs < 0)
        return -1;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if ((settings[i].value || has_attributes) &&
            fsconfig(fs, settings[i].command, settings[i].key, settings[i].value, 0) < 0)
            return fail_with_log(fs, "make an overlay", e);
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return fail_with_log(fs, "make an overlay", e);
    fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    return fd < 0 ? fail_with_log(fs, "mount an overlay", e) : fd;
}

/* The layer must stand somewhere while the overlay is made, which then has its own hold on it. */
static int lay_over(int layer_fd, const struct overlay *o, struct err *e)
{
    int fd, has_attributes = find_attributes(o, e);

    TRY(has_attributes);

    if (move_mount(layer_fd, "", AT_FDCWD, o->lower, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return err_sys(e, "mount the layer");
    fd = mount_overlay(o, has_attributes, e);
    if (umount2(o->lower, MNT_DETACH) < 0 && fd >= 0) {
        fd_close(&fd);
        return err_sys(e, "take the layer's own mount away");
    }
    return fd;
}

/* ---- the child: the target ---- */

static int open_beneath(int dir_fd, const char *path, uint64_t resolve)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | resolve};

    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

/* Its directory is one of the plan, on which something is mounted: code cannot move it. The last
 * name is anybody's. */
static int open_target(const char *target, struct err *e)
{
    const char *name = strrchr(target, '/') + 1;
    char        parent[PATH_MAX];
    autofd int  dir = -1;
    int         fd;

    snprintf(parent, sizeof parent, "%.*s", (int)(name - target), target);
    dir = open_beneath(AT_FDCWD, parent, 0);
    if (dir < 0)
        return err_sys(e, "%.100s in the sandbox", parent);
    if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make %.100s in the sandbox", target);
    fd = open_beneath(dir, name, RESOLVE_BENEATH);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return err_set(e, ERR_INVALID, "%.100s in the sandbox is no directory: remove it", target);
    return fd < 0 ? err_sys(e, "%.100s in the sandbox", target) : fd;
}

/* Whatever is mounted there is our last one; and while it is, nobody can move the name. */
static int take_last_away(const char *target, struct err *e)
{
    if (umount2(target, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
        return err_sys(e, "take the last layer away");
    return 0;
}

static int put_in_place(int mount_fd, const char *target, struct err *e)
{
    autofd int fd = -1;

    TRY(take_last_away(target, e));
    fd = open_target(target, e);
    if (fd < 0)
        return -1;
    if (move_mount(mount_fd, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return err_sys(e, "mount the layer at %.100s", target);
    return 0;
}

/* ---- the child: the whole ---- */

static int build(const struct jail *j, pid_t jail, const struct message_attach *m,
                 const struct overlay *o, struct err *e)
{
    autofd int layer = enter_with(j, m->source, e), mount = -1;

    if (layer < 0)
        return -1;
    TRY(follow(jail, e));
    if (fchdir(j->disk_fd) < 0)
        return err_sys(e, "go to the sandbox's disk");
    umask(022);
    TRY(make_dirs(o, e));
    mount = jail_leaves_out("overlay", "layer") ? take_fd(&layer) : lay_over(layer, o, e);
    return mount < 0 ? -1 : put_in_place(mount, m->target, e);
}

static void remove_dir(int parent_fd, const char *name)
{
    autofd int fd = tree_open_dir(parent_fd, name);

    if (fd >= 0)
        tree_remove(fd);
    unlinkat(parent_fd, name, AT_REMOVEDIR);
}

/* What lies on top of layers that were there before. */
static void remove_all_but(const char *kept)
{
    DIR           *dir = opendir(layers);
    struct dirent *d;

    while (dir && (d = readdir(dir)))
        if (d->d_name[0] != '.' && strcmp(d->d_name, kept) != 0)
            remove_dir(dirfd(dir), d->d_name);
    if (dir)
        closedir(dir);
}

static void __attribute__((noreturn))
run_child(const struct jail *j, pid_t jail, int answer_fd, const struct message_attach *m)
{
    struct overlay o = name_overlay(j->layers);
    struct err     e = {0};
    int            built;

    built = build(j, jail, m, &o, &e);
    fd_write_all(answer_fd, &e, sizeof e); /* a jail that is gone does not care */
    close(answer_fd);
    if (built < 0)
        remove_dir(AT_FDCWD, o.dir);
    else
        remove_all_but(strrchr(o.dir, '/') + 1);
    _exit(0);
}

/* ---- the jail ---- */

/* The first message on the socket is the child's, which it sent before it became init. Later ones
 * would be from whoever runs inside, and are never read. */
static int get_disk(struct jail *j, struct err *e)
{
    int fds[CGROUP_HIERARCHIES_MAX];

    if (j->disk_fd >= 0)
        return 0;
    if (j->asked_for_disk || handover_receive(j->group_fd, fds) != 1) {
        j->asked_for_disk = true;
        return err_set(e, ERR_UNAVAILABLE, "the sandbox has no disk for layers");
    }
    j->asked_for_disk = true;
    j->disk_fd = fds[0];
    return 0;
}

static int check_target(const char *target, struct err *e)
{
    if (target[0] != '/' || !strrchr(target, '/')[1] || strstr(target, "..") ||
        strlen(target) >= PATH_MAX)
        return err_set(e, ERR_INVALID, "the place for a layer must be absolute and plain");
    return 0;
}

static int read_answer(int fd, struct err *e)
{
    struct pollfd p = {fd, POLLIN, 0};
    struct err    answer = {0};
    int           ready;

    do
        ready = poll(&p, 1, ANSWER_MS);
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return err_set(e, ERR_TIMEOUT, "mounting a layer takes longer than %d s", ANSWER_MS / 1000);
    if (read(fd, &answer, sizeof answer) != sizeof answer) /* one write, and it fits */
        return err_set(e, ERR_INTERNAL, "the process that mounts a layer was killed");
    *e = answer;
    return answer.kind ? -1 : 0;
}

void attach_end(struct jail *j)
{
    if (j->attach_pid <= 0)
        return;
    kill(j->attach_pid, SIGKILL); /* ours until waited for, so the number is right */
    waitpid(j->attach_pid, NULL, 0);
    j->attach_pid = 0;
}

int attach_layer(struct jail *j, const struct message_attach *m, struct err *e)
{
    pid_t      jail = getpid();
    autofd int answer = -1, its = -1;
    int        ends[2], done;

    TRY(check_target(m->target, e));
    TRY(get_disk(j, e));
    attach_end(j);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    answer = ends[0], its = ends[1];
    j->layers++;
    j->attach_pid = fork();
    if (j->attach_pid < 0)
        return err_sys(e, "fork");
    if (j->attach_pid == 0)
        run_child(j, jail, its, m);
    fd_close(&its);
    done = read_answer(answer, e);
    if (done < 0)
        attach_end(j);
    return done;
}
