/* faults REPORT [ROLE CLASS N] -- PROGRAM [ARG…] - runs the program and lets one system call fail.
 *
 * It traces the program and all that it starts (ptrace), static, walled in and not dumpable as they
 * may be: so it needs root, and the product needs no seam. What is not ours (Node, a shell) is let
 * go when it is executed. A process has a role: the name of its program without `jerboa-`, and a
 * `+` from its fork to its next exec. Calls are counted by role and class, over all processes of a
 * role; the N-th of CLASS in ROLE does not happen, and gets the error of its class, or half of its
 * length where the class is `short`. As the tracer sees a call before any seccomp filter does, also
 * calls that a filter would refuse can fail here.
 *
 * REPORT gets lines: `fired ROLE CALL DETAIL` when it happens, `died ROLE SIGNAL` when a process of
 * ours dies of a signal that tells a mistake, and at the end `count ROLE CLASS N` for each. The
 * exit status is the program's. Killed, it takes all it traces with it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRACEES_MAX = 512, ROLES_MAX = 24, CALLS_MAX = 24, ROLE_SIZE = 24 };

/* ---- what can fail, and how ----
 *
 * Not here is what cannot (umask, getrandom, lseek of a file), what nobody looks at (close), and
 * memory, whose end is an abort. */

struct call {
    const char *name;
    long        nr;
    int         path; /* which argument is one, counted from 1; 0: none */
};

#define CALL(name, path)                                                                           \
    {                                                                                              \
#name, SYS_##name, path                                                                    \
    }

static const struct class
{
    const char *name;
    int         error; /* 0: half of the length */
    struct call calls[CALLS_MAX];
} classes[] = {
    {"open",
     EMFILE,
     {
         CALL(openat, 2),
         CALL(openat2, 2),
#ifdef SYS_open
         CALL(open, 1),
#endif
     }},
    {"fork",
     EAGAIN,
     {
         CALL(clone, 0),
         CALL(clone3, 0),
#ifdef SYS_fork
         CALL(fork, 0),
         CALL(vfork, 0),
#endif
     }},
    {"exec", ENOMEM, {CALL(execve, 1), CALL(execveat, 2)}},
    {"mount",
     ENOMEM,
     {CALL(mount, 2), CALL(fsopen, 1), CALL(fsconfig, 0), CALL(fsmount, 0), CALL(move_mount, 4),
      CALL(open_tree, 2), CALL(mount_setattr, 2), CALL(umount2, 1), CALL(pivot_root, 1)}},
    {"socket",
     EMFILE,
     {
         CALL(socket, 0),
         CALL(socketpair, 0),
         CALL(pipe2, 0),
         CALL(accept4, 0),
#ifdef SYS_pipe
         CALL(pipe, 0),
#endif
     }},
    {"connect",
     ENOBUFS,
     {CALL(connect, 0), CALL(bind, 0), CALL(listen, 0), CALL(setsockopt, 0), CALL(getsockopt, 0),
      CALL(getsockname, 0), CALL(getpeername, 0), CALL(shutdown, 0)}},
    {"write",
     ENOSPC,
     {CALL(write, 0), CALL(pwrite64, 0), CALL(writev, 0), CALL(ftruncate, 0), CALL(fsync, 0),
      CALL(fdatasync, 0), CALL(syncfs, 0), CALL(fallocate, 0)}},
    {"write-epipe", EPIPE, {CALL(write, 0), CALL(writev, 0), CALL(sendto, 0)}},
    {"write-short", 0, {CALL(write, 0), CALL(pwrite64, 0), CALL(sendto, 0)}},
    {"send", ENOBUFS, {CALL(sendto, 0), CALL(sendmsg, 0), CALL(sendmmsg, 0)}},
    {"read",
     EIO,
     {CALL(read, 0), CALL(pread64, 0), CALL(readv, 0), CALL(recvfrom, 0), CALL(recvmsg, 0),
      CALL(getdents64, 0)}},
    {"read-short", 0, {CALL(read, 0), CALL(pread64, 0), CALL(recvfrom, 0)}},
    {"names",
     ENOSPC,
     {
         CALL(mkdirat, 2),     CALL(renameat, 2), CALL(renameat2, 2), CALL(symlinkat, 3),
         CALL(linkat, 2),      CALL(mknodat, 2),  CALL(fchmodat, 2),  CALL(fchownat, 2),
         CALL(fchmod, 0),      CALL(fchown, 0),   CALL(utimensat, 2), CALL(setxattr, 1),
         CALL(removexattr, 1),
#ifdef SYS_mkdir
         CALL(mkdir, 1),       CALL(rename, 1),   CALL(symlink, 2),   CALL(link, 2),
         CALL(mknod, 1),       CALL(chmod, 1),    CALL(chown, 1),
#endif
     }},
    {"remove",
     EBUSY,
     {
         CALL(unlinkat, 2),
#ifdef SYS_rmdir
         CALL(rmdir, 1),
         CALL(unlink, 1),
#endif
     }},
    {"look",
     EIO,
     {
         CALL(newfstatat, 2),
         CALL(statx, 2),
         CALL(fstat, 0),
         CALL(readlinkat, 2),
         CALL(statfs, 1),
         CALL(fstatfs, 0),
         CALL(faccessat, 2),
         CALL(faccessat2, 2),
         CALL(fgetxattr, 0),
#ifdef SYS_access
         CALL(access, 1),
         CALL(readlink, 1),
         CALL(stat, 1),
         CALL(lstat, 1),
#endif
     }},
    {"events",
     ENOMEM,
     {CALL(epoll_create1, 0), CALL(epoll_ctl, 0), CALL(eventfd2, 0), CALL(timerfd_create, 0),
      CALL(timerfd_settime, 0), CALL(signalfd4, 0), CALL(inotify_init1, 0),
      CALL(inotify_add_watch, 2), CALL(inotify_rm_watch, 0), CALL(pidfd_open, 0)}},
    {"poll",
     EINTR,
     {
         CALL(ppoll, 0),
         CALL(epoll_pwait, 0),
#ifdef SYS_poll
         CALL(poll, 0),
         CALL(epoll_wait, 0),
         CALL(select, 0),
#endif
     }},
    {"memory", EMFILE, {CALL(memfd_create, 0)}},
    {"dup",
     EMFILE,
     {
         CALL(dup, 0),
         CALL(dup3, 0),
         CALL(fcntl, 0),
         CALL(close_range, 0),
#ifdef SYS_dup2
         CALL(dup2, 0),
#endif
     }},
    {"rights",
     EPERM,
     {CALL(prctl, 0), CALL(seccomp, 0), CALL(setns, 0), CALL(unshare, 0), CALL(capset, 0),
      CALL(capget, 0), CALL(setresuid, 0), CALL(setresgid, 0), CALL(setgroups, 0),
      CALL(landlock_create_ruleset, 0), CALL(landlock_add_rule, 0), CALL(landlock_restrict_self, 0),
      CALL(keyctl, 0), CALL(setsid, 0), CALL(sethostname, 0), CALL(prlimit64, 0), CALL(ioctl, 0),
      CALL(chdir, 1), CALL(fchdir, 0)}},
    {"lock", ENOLCK, {CALL(flock, 0)}}, /* those of fcntl are of `dup` */
    {"wait", EINTR, {CALL(wait4, 0), CALL(waitid, 0)}},
    {"kill", EPERM, {CALL(kill, 0), CALL(pidfd_send_signal, 0), CALL(tgkill, 0)}},
};

enum { CLASSES = sizeof classes / sizeof classes[0] };

/* ---- what runs ---- */

static struct role {
    char     name[ROLE_SIZE];
    unsigned counts[CLASSES];
} roles[ROLES_MAX];

static struct tracee {
    pid_t        pid; /* 0: free */
    struct role *role;
    int          error; /* what the call that it is in will get; 0: its own result */
    bool         waits; /* stopped, until it has a role */
} tracees[TRACEES_MAX];

static const char *wanted_role, *wanted_class;
static unsigned    wanted_n;
static FILE       *report;

static void __attribute__((noreturn, format(printf, 1, 2))) give_up(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fprintf(stderr, "faults: ");
    vfprintf(stderr, format, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    exit(99);
}

static struct role *role_named(const char *name)
{
    for (size_t i = 0; i < ROLES_MAX; i++) {
        if (!roles[i].name[0])
            snprintf(roles[i].name, ROLE_SIZE, "%s", name);
        if (strcmp(roles[i].name, name) == 0)
            return &roles[i];
    }
    give_up("more than %d roles", ROLES_MAX);
}

static struct tracee *tracee_of(pid_t pid)
{
    struct tracee *empty = NULL;

    for (size_t i = 0; i < TRACEES_MAX; i++) {
        if (tracees[i].pid == pid)
            return &tracees[i];
        if (!tracees[i].pid && !empty)
            empty = &tracees[i];
    }
    if (!empty)
        give_up("more than %d processes", TRACEES_MAX);
    *empty = (struct tracee){.pid = pid};
    return empty;
}

/* The role after an exec; NULL: not one of ours. In a sandbox jerboa-init is called init. */
static struct role *role_executed(pid_t pid)
{
    char  path[64], comm[ROLE_SIZE] = "";
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return NULL;
    if (!fgets(comm, sizeof comm, f))
        comm[0] = 0;
    fclose(f);
    comm[strcspn(comm, "\n")] = 0;
    if (strncmp(comm, "jerboa-", 7) == 0)
        return role_named(comm + 7);
    return strcmp(comm, "jerboa") == 0 || strcmp(comm, "init") == 0 ? role_named(comm) : NULL;
}

static struct role *role_forked(const struct role *parent)
{
    char name[ROLE_SIZE];

    snprintf(name, sizeof name, "%.*s+", (int)strcspn(parent->name, "+"), parent->name);
    return role_named(name);
}

/* ---- one call ---- */

/* Only what the kernel itself may cut: no datagram, no file of a kernel's, whose write is one
 * value. */
static bool may_be_short(pid_t pid, int fd, uint64_t size)
{
    struct stat st;
    int         pid_fd, own, type = 0;
    socklen_t   length = sizeof type;
    bool        may = false;

    if (size < 2)
        return false;
    pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pid_fd < 0) /* a thread */
        return false;
    own = (int)syscall(SYS_pidfd_getfd, pid_fd, fd, 0);
    close(pid_fd);
    if (own < 0)
        return false;
    if (fstat(own, &st) == 0) {
        if (S_ISSOCK(st.st_mode))
            may = getsockopt(own, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
        else
            may = S_ISFIFO(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size > 0);
    }
    close(own);
    return may;
}

static void set_call(pid_t pid, bool skip, const uint64_t *size)
{
    struct user_regs_struct regs;
    struct iovec            all = {&regs, sizeof regs};

    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &all) < 0)
        return;
#if defined __x86_64__
    if (skip)
        regs.orig_rax = (unsigned long long)-1;
    if (size)
        regs.rdx = *size;
#elif defined __aarch64__
    if (skip) {
        int          none = -1;
        struct iovec nr = {&none, sizeof none};
        ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &nr);
    }
    if (size)
        regs.regs[2] = *size;
#endif
    ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &all);
}

static void set_result(pid_t pid, int error)
{
    struct user_regs_struct regs;
    struct iovec            all = {&regs, sizeof regs};

    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &all) < 0)
        return;
#if defined __x86_64__
    regs.rax = (unsigned long long)-error;
#elif defined __aarch64__
    regs.regs[0] = (unsigned long long)-error;
#endif
    ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &all);
}

static void tell_fired(const struct tracee *t, const struct call *c, const uint64_t args[6])
{
    char         path[200] = "";
    struct iovec here = {path, sizeof path - 1};
    struct iovec there = {(void *)(uintptr_t)(c->path ? args[c->path - 1] : 0), sizeof path - 1};

    if (c->path &&
        process_vm_readv(t->pid, &here, 1, &there, 1, 0) < 0) { /* it may end at a page's end */
        there.iov_len = 4096 - (uintptr_t)there.iov_base % 4096;
        if (there.iov_len < sizeof path)
            process_vm_readv(t->pid, &here, 1, &there, 1, 0);
    }
    if (!c->path)
        snprintf(path, sizeof path, "%lld, %lld, %lld", (long long)args[0], (long long)args[1],
                 (long long)args[2]);
    fprintf(report, "fired %s %s %s\n", t->role->name, c->name, path);
}

static void enter(struct tracee *t, long nr, const uint64_t args[6])
{
    for (size_t i = 0; i < CLASSES; i++)
        for (const struct call *c = classes[i].calls; c < classes[i].calls + CALLS_MAX && c->name;
             c++) {
            if (c->nr != nr || (!classes[i].error && !may_be_short(t->pid, (int)args[0], args[2])))
                continue;
            unsigned n = ++t->role->counts[i];
            if (n != wanted_n || strcmp(wanted_role, t->role->name) != 0 ||
                strcmp(wanted_class, classes[i].name) != 0)
                continue;
            tell_fired(t, c, args);
            t->error = classes[i].error;
            set_call(t->pid, t->error, t->error ? NULL : &(uint64_t){args[2] / 2});
        }
}

static void at_call(struct tracee *t)
{
    struct __ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, (void *)sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        enter(t, (long)info.entry.nr, (const uint64_t *)info.entry.args);
    if (info.op == PTRACE_SYSCALL_INFO_EXIT && t->error) {
        set_result(t->pid, t->error);
        t->error = 0;
    }
}

/* ---- all of them ---- */

static bool is_mistake(int signal)
{
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS,  SIGFPE,
                                  SIGILL,  SIGSYS,  SIGTRAP, SIGPIPE};

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (signal == signals[i])
            return true;
    return false;
}

/* A new process may stop before its parent tells of it: it waits, stopped, until it has a role. */
static void at_stop(struct tracee *t, int status)
{
    int           event = status >> 16, deliver = 0;
    unsigned long child;

    if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
        if (ptrace(PTRACE_GETEVENTMSG, t->pid, 0, &child) == 0) {
            struct tracee *c = tracee_of((pid_t)child);
            c->role = role_forked(t->role);
            if (c->waits)
                ptrace(PTRACE_SYSCALL, c->pid, 0, 0);
            c->waits = false;
        }
    } else if (event == PTRACE_EVENT_EXEC) {
        t->role = role_executed(t->pid);
        if (!t->role) {
            ptrace(PTRACE_DETACH, t->pid, 0, 0);
            t->pid = 0;
            return;
        }
    } else if (event == PTRACE_EVENT_STOP) {
        if (!t->role) {
            t->waits = true;
            return;
        }
    } else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        at_call(t);
    } else if (!event) {
        deliver = WSTOPSIG(status);
    }
    ptrace(PTRACE_SYSCALL, t->pid, 0, deliver);
}

static int watch(pid_t first)
{
    int   status, result = 0;
    pid_t pid;

    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        struct tracee *t = tracee_of(pid);

        if (WIFSTOPPED(status)) {
            at_stop(t, status);
            continue;
        }
        if (WIFSIGNALED(status) && t->role && is_mistake(WTERMSIG(status)))
            fprintf(report, "died %s %s\n", t->role->name, sigabbrev_np(WTERMSIG(status)));
        if (pid == first)
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        t->pid = 0;
    }
    return result;
}

static pid_t start(char **argv)
{
    int   go[2];
    char  byte;
    pid_t pid;

    if (pipe2(go, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        give_up("%s", strerror(errno));
    if (pid == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) < 0)
            _exit(99);
        execv(argv[0], argv);
        _exit(99);
    }
    if (ptrace(PTRACE_SEIZE, pid, 0,
               PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) < 0)
        give_up("ptrace: %s", strerror(errno));
    tracee_of(pid)->role = role_named("faults");
    close(go[0]);
    close(go[1]);
    return pid;
}

static void tell_counts(void)
{
    for (size_t r = 0; r < ROLES_MAX && roles[r].name[0]; r++)
        for (size_t i = 0; i < CLASSES; i++)
            if (roles[r].counts[i])
                fprintf(report, "count %s %s %u\n", roles[r].name, classes[i].name,
                        roles[r].counts[i]);
}

int main(int argc, char **argv)
{
    int first = argc > 3 && strcmp(argv[2], "--") == 0   ? 3
                : argc > 6 && strcmp(argv[5], "--") == 0 ? 6
                                                         : 0,
        result;

    if (!first)
        give_up("faults REPORT [ROLE CLASS N] -- PROGRAM [ARG…]");
    wanted_role = first == 6 ? argv[2] : "";
    wanted_class = first == 6 ? argv[3] : "";
    wanted_n = first == 6 ? (unsigned)atoi(argv[4]) : 0;
    report = fopen(argv[1], "we");
    if (!report)
        give_up("%s: %s", argv[1], strerror(errno));
    setlinebuf(report);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    pid_t pid = start(argv + first);
    for (int fd = 0; fd < 3; fd++) /* their ends are for who started us to see */
        close(fd);
    result = watch(pid);
    tell_counts();
    return result;
}
