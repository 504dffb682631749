#include "jail/userns.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

static int write_map(pid_t pid, const char *file, unsigned inside, unsigned outside, unsigned count,
                     struct err *e)
{
    char       path[64], text[64];
    int        n = snprintf(text, sizeof text, "%u %u %u", inside, outside, count);
    autofd int fd = -1;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)n) != n)
        return err_sys(e, "write '%s' to %s", text, path);
    return 0;
}

/* Else the kernel lets nobody without rights map a gid: a group can also be what denies access. */
static int deny_setgroups(pid_t pid, struct err *e)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/setgroups", (int)pid);
    return file_write_text(AT_FDCWD, path, "deny", e);
}

int userns_map(pid_t pid, uid_t uid, gid_t gid, unsigned count, struct err *e)
{
    if (count == 1)
        TRY(deny_setgroups(pid, e));
    TRY(write_map(pid, "gid_map", 0, gid, count, e));
    return write_map(pid, "uid_map", 0, uid, count, e);
}

/* The namespace lives as long as this child, which must not outlive the jail. */
static void __attribute__((noreturn)) hold_namespace(pid_t jail)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == jail)
        pause();
    _exit(0);
}

int userns_for_mount(uid_t uid_on_disk, gid_t gid_on_disk, uid_t uid_seen, struct err *e)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    char              path[64];
    int               fd = -1;
    pid_t             jail = getpid(), pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

    if (pid < 0)
        return err_sys(e, "clone a user namespace");
    if (pid == 0)
        hold_namespace(jail);
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    if (write_map(pid, "gid_map", gid_on_disk, uid_seen, 1, e) == 0 &&
        write_map(pid, "uid_map", uid_on_disk, uid_seen, 1, e) == 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            err_sys(e, "open %s", path);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return fd;
}
