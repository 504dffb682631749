/* filter_gen - writes the seccomp filter of sandboxes as a C table, or for container engines as
 * text in their JSON form; runs at build time.
 *
 * An allow-list: whatever is not named gets ENOSYS, so that programs made for newer kernels fall
 * back as they would on an older one. Left out on purpose, because they are ways out or make the
 * kernel's surface larger: mount and its family, namespaces (unshare, setns, clone with CLONE_NEW*;
 * clone3, whose flags a filter cannot see), ptrace and process_vm_*, bpf, perf_event_open,
 * io_uring, userfaultfd, keyctl, modules, kexec, clocks, swap, quotas, open_by_handle_at, openat2
 * and fchmodat2 (whose modes a filter cannot see), personality, memory policies.
 *
 * For the machine named by its argument, which in a cross build is not this one; numbers of flags
 * are this one's, and tests/unit/filter_test.c shows that they are the other's too.
 *
 * Compiled here instead of in the jail: building the rules takes 2.4 ms, loading the table 0.1. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SET_ID_BITS = 06000, TMPFILE_BIT = O_TMPFILE & ~O_DIRECTORY, SOCKET_TYPE_BITS = 0xf };

static scmp_filter_ctx ctx;
static bool            as_json;
static unsigned        n_rules;

static void check(int r, const char *what)
{
    if (r < 0) {
        fprintf(stderr, "filter_gen: %s: %s\n", what, strerror(-r));
        exit(1);
    }
}

/* ---- the same as JSON, as string literals of C ---- */

static void print_arg(const struct scmp_arg_cmp *a)
{
    printf("{\\\"index\\\":%u,\\\"value\\\":%llu,\\\"valueTwo\\\":%llu,\\\"op\\\":\\\"%s\\\"}",
           a->arg, (unsigned long long)a->datum_a, (unsigned long long)a->datum_b,
           a->op == SCMP_CMP_EQ ? "SCMP_CMP_EQ" : "SCMP_CMP_MASKED_EQ");
}

static void print_rule(uint32_t action, const char *name, unsigned n,
                       const struct scmp_arg_cmp *args)
{
    if (action ==
        SCMP_ACT_ERRNO(0)) /* what an engine makes of it differs; init's own filter has it */
        return;
    printf("    \"%s{\\\"names\\\":[\\\"%s\\\"],", n_rules++ ? "," : "", name);
    if (action == SCMP_ACT_ALLOW)
        printf("\\\"action\\\":\\\"SCMP_ACT_ALLOW\\\"");
    else
        printf("\\\"action\\\":\\\"SCMP_ACT_ERRNO\\\",\\\"errnoRet\\\":%u", action & 0xffff);
    for (unsigned i = 0; i < n; i++) {
        printf("%s", i ? "," : ",\\\"args\\\":[");
        print_arg(&args[i]);
    }
    printf("%s}\"\n", n ? "]" : "");
}

/* ---- rules ---- */

static void rule(uint32_t action, const char *name, unsigned n, const struct scmp_arg_cmp *args)
{
    int nr = seccomp_syscall_resolve_name(name);

    if (as_json) {
        print_rule(action, name, n, args);
        return;
    }
    if (nr == __NR_SCMP_ERROR)
        check(-EINVAL, name);
    /* Calls that this architecture never had are dropped by the library. */
    check(seccomp_rule_add_array(ctx, action, nr, n, args), name);
}

static struct scmp_arg_cmp masked(unsigned argument, uint64_t mask, uint64_t value)
{
    return (struct scmp_arg_cmp){argument, SCMP_CMP_MASKED_EQ, mask, value};
}

/* The kernel looks at the low half of such arguments only, so must we. */
static struct scmp_arg_cmp word(unsigned argument, uint64_t value)
{
    return masked(argument, 0xffffffff, value);
}

/* ---- what of a call is allowed ---- */

static void allow_all(const char *name)
{
    rule(SCMP_ACT_ALLOW, name, 0, NULL);
}

/* Behind `n` conditions in `args`, which has room for one more. */
static void allow_mode(const char *name, unsigned n, struct scmp_arg_cmp *args, unsigned mode)
{
    args[n] = masked(mode, SET_ID_BITS, 0);
    rule(SCMP_ACT_ALLOW, name, n + 1, args);
    args[n] = masked(mode, SET_ID_BITS, 04000);
    rule(SCMP_ACT_ERRNO(EPERM), name, n + 1, args);
    args[n] = masked(mode, 02000, 02000);
    rule(SCMP_ACT_ERRNO(EPERM), name, n + 1, args);
}

static void allow_mode_of_file(const char *name) /* a path or a descriptor, the mode */
{
    struct scmp_arg_cmp args[1];

    allow_mode(name, 0, args, 1);
}

static void allow_mode_below(const char *name) /* a directory, a path, the mode */
{
    struct scmp_arg_cmp args[1];

    allow_mode(name, 0, args, 2);
}

/* The mode, behind the flags, counts only when they say that a file may be created. */
static void allow_flags_and_mode(const char *name, unsigned flags)
{
    struct scmp_arg_cmp args[2] = {masked(flags, O_CREAT | TMPFILE_BIT, 0)};

    rule(SCMP_ACT_ALLOW, name, 1, args);
    args[0] = masked(flags, O_CREAT, O_CREAT);
    allow_mode(name, 1, args, flags + 1);
    args[0] = masked(flags, O_CREAT | TMPFILE_BIT, TMPFILE_BIT);
    allow_mode(name, 1, args, flags + 1);
}

static void allow_open(const char *name)
{
    allow_flags_and_mode(name, 1);
}

static void allow_open_below(const char *name)
{
    allow_flags_and_mode(name, 2);
}

static void allow_ioctl(const char *name)
{
    static const unsigned requests[] = {
        TCGETS,   TCSETS,     TCSETSW,  TCSETSF, TIOCGWINSZ, TIOCSWINSZ, TIOCGPGRP, TIOCSPGRP,
        TIOCGPTN, TIOCSPTLCK, FIONREAD, FIONBIO, FIOCLEX,    FIONCLEX,   FICLONE, /* cp tries it */
    };

    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        struct scmp_arg_cmp request = word(1, requests[i]);
        rule(SCMP_ACT_ALLOW, name, 1, &request);
    }
}

static void allow_clone(const char *name)
{
    const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWTIME;
    struct scmp_arg_cmp none = masked(0, namespaces, 0);

    rule(SCMP_ACT_ALLOW, name, 1, &none);
}

static void answer_unchanged(const char *name)
{
    const uint64_t      unchanged = 0xffffffff;
    struct scmp_arg_cmp args[3] = {masked(0, unchanged, unchanged), masked(1, unchanged, 0),
                                   masked(2, unchanged, unchanged)};

    rule(SCMP_ACT_ERRNO(0), name, 3, args);
}

static void allow_socket(const char *name)
{
    static const struct {
        int family, type, protocol;
    } sockets[] = {
        {AF_INET, SOCK_STREAM, 0},  {AF_INET, SOCK_STREAM, IPPROTO_TCP},
        {AF_INET, SOCK_DGRAM, 0},   {AF_INET, SOCK_DGRAM, IPPROTO_UDP},
        {AF_INET6, SOCK_STREAM, 0}, {AF_INET6, SOCK_STREAM, IPPROTO_TCP},
        {AF_INET6, SOCK_DGRAM, 0},  {AF_INET6, SOCK_DGRAM, IPPROTO_UDP},
    };
    struct scmp_arg_cmp args[3];

    for (size_t i = 0; i < sizeof sockets / sizeof sockets[0]; i++) {
        args[0] = word(0, (uint64_t)sockets[i].family);
        args[1] = masked(1, SOCKET_TYPE_BITS, (uint64_t)sockets[i].type);
        args[2] = word(2, (uint64_t)sockets[i].protocol);
        rule(SCMP_ACT_ALLOW, name, 3, args);
    }
    args[0] = word(0, AF_UNIX);
    rule(SCMP_ACT_ALLOW, name, 1, args);
    args[0] = word(0, AF_NETLINK); /* os.networkInterfaces() */
    args[1] = word(2, NETLINK_ROUTE);
    rule(SCMP_ACT_ALLOW, name, 2, args);
}

static void allow_unix(const char *name)
{
    struct scmp_arg_cmp family = word(0, AF_UNIX);

    rule(SCMP_ACT_ALLOW, name, 1, &family);
}

static void allow_own(const char *name)
{
    struct scmp_arg_cmp self = word(0, 0);

    rule(SCMP_ACT_ALLOW, name, 1, &self);
}

static void allow_own_priority(const char *name)
{
    struct scmp_arg_cmp args[2] = {word(0, PRIO_PROCESS), word(1, 0)};

    rule(SCMP_ACT_ALLOW, name, 2, args);
}

/* All but the core limit. */
static void allow_own_limits(const char *name)
{
    struct scmp_arg_cmp args[3] = {word(0, 0)};

    for (unsigned i = 0; i < RLIM_NLIMITS; i++) {
        args[1] = word(1, i);
        if (i != RLIMIT_CORE)
            rule(SCMP_ACT_ALLOW, name, 2, args);
    }
    args[1] = word(1, RLIMIT_CORE);
    args[2] = (struct scmp_arg_cmp){2, SCMP_CMP_EQ, 0, 0}; /* asking is fine */
    rule(SCMP_ACT_ALLOW, name, 3, args);
}

static void allow_limits(const char *name)
{
    for (unsigned i = 0; i < RLIM_NLIMITS; i++) {
        struct scmp_arg_cmp which = word(0, i);
        if (i != RLIMIT_CORE)
            rule(SCMP_ACT_ALLOW, name, 1, &which);
    }
}

/* ---- the table: every call that a sandbox can make ---- */

static const struct {
    const char *subject, *why;
    void (*allow)(const char *name);
    const char *names;
} groups[] = {
    {"files by path", "what paths reach is decided by mounts, owners and Landlock", allow_all,
     "access faccessat faccessat2 chdir fchdir getcwd chown fchown fchownat lchown link "
     "linkat lstat stat newfstatat fstat fstatat64 statx readlink readlinkat rename "
     "renameat renameat2 rmdir symlink symlinkat statfs fstatfs truncate ftruncate umask "
     "unlink unlinkat utime utimes futimesat utimensat getdents getdents64"},
    {"modes", "but not setuid and setgid: a file in FILES_DIR keeps the bits on the host",
     allow_mode_of_file, "chmod fchmod mkdir mknod creat"},
    {"modes below a directory", "the same", allow_mode_below, "fchmodat mkdirat mknodat"},
    {"opening", "with a mode where it creates: the same bits are refused", allow_open, "open"},
    {"opening below a directory", "the same", allow_open_below, "openat"},
    {"extended attributes", "cp and tar look at them; those with a meaning need capabilities",
     allow_all,
     "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr "
     "fsetxattr removexattr lremovexattr fremovexattr"},
    {"descriptors", "of what is open already; how many there are is limited", allow_all,
     "close close_range copy_file_range dup dup2 dup3 fadvise64 fallocate fcntl "
     "fdatasync flock fsync lseek pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev "
     "pwritev2 read readahead readv sendfile splice sync_file_range tee write writev "
     "memfd_create"},
    {"devices",
     "terminals and sockets as programs ask for them; never TIOCSTI or TIOCLINUX, which "
     "type for the user",
     allow_ioctl, "ioctl"},
    {"waiting", "every event loop; bounded by the limit of descriptors", allow_all,
     "epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd "
     "eventfd2 poll ppoll select pselect6 signalfd signalfd4 timerfd_create "
     "timerfd_gettime timerfd_settime inotify_init inotify_init1 inotify_add_watch "
     "inotify_rm_watch"},
    {"making sockets",
     "streams and datagrams of the ordinary kinds: none that is raw, none whose "
     "protocol makes the kernel load a module",
     allow_socket, "socket"},
    {"pairs of sockets", "between processes of the sandbox", allow_unix, "socketpair"},
    {"using sockets", "where they lead is decided by the network namespace and init", allow_all,
     "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom "
     "recvmmsg recvmsg sendmmsg sendmsg sendto setsockopt shutdown"},
    {"memory", "counted by the cgroup; SysV memory is of an ipc namespace of its own", allow_all,
     "brk madvise membarrier mincore mlock mlock2 mmap mprotect mremap msync munlock "
     "munmap pkey_alloc pkey_free pkey_mprotect shmat shmctl shmdt shmget semctl semget "
     "semop semtimedop"},
    {"processes and threads", "in a pid namespace of its own, as many as the cgroup lets",
     allow_all,
     "arch_prctl capget execve exit exit_group fork vfork futex futex_waitv "
     "get_robust_list set_robust_list set_tid_address rseq getcpu getegid geteuid getgid "
     "getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit "
     "getrusage getsid gettid getuid prctl sched_get_priority_max sched_get_priority_min "
     "sched_getaffinity sched_getparam sched_getscheduler sched_yield setpgid setsid "
     "wait4 waitid"},
    {"more of them", "without new namespaces; not clone3, whose flags a filter cannot see",
     allow_clone, "clone"},
    {"ids",
     "posix_spawn, as make calls it, sets the effective ids to the real ones: all are 0 "
     "inside, so that changes nothing, and the kernel is not asked",
     answer_unchanged, "setresuid setresgid"},
    {"own processors", "init has the same uid: of oneself only", allow_own, "sched_setaffinity"},
    {"own priority", "of oneself only", allow_own_priority, "setpriority"},
    {"own limits",
     "of oneself only; and the core limit stays at 1, which alone keeps the kernel "
     "from starting a core_pattern program, as root and outside, with what crashed",
     allow_own_limits, "prlimit64"},
    {"own limits, as older programs set them", "the same", allow_limits, "setrlimit"},
    {"signals", "reach its own pid namespace; init takes none", allow_all,
     "kill tkill tgkill pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask "
     "rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo "
     "sigaltstack"},
    {"time", "to be told it and to wait for it; none that sets a clock", allow_all,
     "alarm clock_getres clock_gettime clock_nanosleep getitimer setitimer gettimeofday "
     "nanosleep time times timer_create timer_delete timer_getoverrun timer_gettime "
     "timer_settime"},
    {"the rest", "every program asks for them", allow_all, "getrandom sysinfo uname"},
};

/* What init needs besides until it has given up all rights and loaded the filter itself
 * (init/alone.c): only in the JSON form. */
static void allow_netfilter(const char *name)
{
    struct scmp_arg_cmp args[2] = {word(0, AF_NETLINK), word(2, NETLINK_NETFILTER)};

    rule(SCMP_ACT_ALLOW, name, 2, args);
}

static const char begin_names[] =
    "capset seccomp setgroups setresuid setresgid prlimit64 setrlimit";

static void allow_group(const char *names, void (*allow)(const char *name))
{
    char name[64];
    int  n;

    for (; sscanf(names, "%63s%n", name, &n) == 1; names += n)
        allow(name);
}

static void print_json(uint32_t arch)
{
    printf("\"{\\\"defaultAction\\\":\\\"SCMP_ACT_ERRNO\\\",\\\"defaultErrnoRet\\\":%d,"
           "\\\"architectures\\\":[\\\"%s\\\"],"
           "\\\"syscalls\\\":[\"\n",
           ENOSYS, arch == SCMP_ARCH_AARCH64 ? "SCMP_ARCH_AARCH64" : "SCMP_ARCH_X86_64");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        allow_group(groups[i].names, groups[i].allow);
    allow_group(begin_names, allow_all);
    allow_group("socket", allow_netfilter);
    printf("\"]}\"\n");
}

/* The program as initialisers of struct sock_filter. */
static void print_program(void)
{
    FILE              *raw = tmpfile();
    struct sock_filter f;

    if (!raw)
        check(-errno, "temporary file");
    check(seccomp_export_bpf(ctx, fileno(raw)), "export");
    rewind(raw);
    printf("/* Made by filter_gen.c:\n");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        printf(" * %s: %s\n", groups[i].subject, groups[i].why);
    printf(" */\n#include <linux/filter.h>\n\nstatic const struct sock_filter filter[] = {\n");
    while (fread(&f, sizeof f, 1, raw) == 1)
        printf("    {0x%x, %u, %u, 0x%x},\n", f.code, f.jt, f.jf, f.k);
    printf("};\n");
    fclose(raw);
}

int main(int argc, char **argv)
{
    uint32_t arch = argc > 1 ? seccomp_arch_resolve_name(argv[1]) : 0;

    if (!arch) {
        fprintf(stderr, "usage: filter_gen ARCHITECTURE [json]\n");
        return 2;
    }
    as_json = argc > 2;
    if (as_json) {
        print_json(arch);
        return 0;
    }
    ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (!ctx)
        check(-ENOMEM, "seccomp_init");
    if (arch != seccomp_arch_native()) {
        check(seccomp_arch_add(ctx, arch), "add architecture");
        check(seccomp_arch_remove(ctx, SCMP_ARCH_NATIVE), "remove architecture");
    }
    check(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
          "bad architecture");
    check(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "binary tree");
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        allow_group(groups[i].names, groups[i].allow);
    print_program();
    seccomp_release(ctx);
    return 0;
}
