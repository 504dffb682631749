/* filter_gen - writes the seccomp filter of sandboxes as a C table; runs at build time.
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Plain calls, by subject. */
static const struct {
    const char *subject, *names;
} allowed[] = {
    {"files by path",
     "access faccessat faccessat2 chdir fchdir getcwd chown fchown fchownat lchown link "
     "linkat lstat stat newfstatat fstat fstatat64 statx readlink readlinkat rename "
     "renameat renameat2 rmdir symlink symlinkat statfs fstatfs truncate ftruncate umask "
     "unlink unlinkat utime utimes futimesat utimensat getdents getdents64"},
    {"extended attributes, which cp and tar look at",
     "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr "
     "fsetxattr removexattr lremovexattr fremovexattr"},
    {"descriptors",
     "close close_range copy_file_range dup dup2 dup3 fadvise64 fallocate fcntl "
     "fdatasync flock fsync lseek pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev "
     "pwritev2 read readahead readv sendfile splice sync_file_range tee write writev "
     "memfd_create"},
    {"waiting", "epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd "
                "eventfd2 poll ppoll select pselect6 signalfd signalfd4 timerfd_create "
                "timerfd_gettime timerfd_settime inotify_init inotify_init1 inotify_add_watch "
                "inotify_rm_watch"},
    {"sockets", "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom "
                "recvmmsg recvmsg sendmmsg sendmsg sendto setsockopt shutdown"},
    {"memory", "brk madvise membarrier mincore mlock mlock2 mmap mprotect mremap msync munlock "
               "munmap pkey_alloc pkey_free pkey_mprotect shmat shmctl shmdt shmget semctl semget "
               "semop semtimedop"},
    {"processes and threads",
     "arch_prctl capget execve exit exit_group fork vfork futex futex_waitv "
     "get_robust_list set_robust_list set_tid_address rseq getcpu getegid geteuid getgid "
     "getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit "
     "getrusage getsid gettid getuid prctl sched_get_priority_max sched_get_priority_min "
     "sched_getaffinity sched_getparam sched_getscheduler sched_yield setpgid setsid "
     "wait4 waitid"},
    {"signals", "kill tkill tgkill pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask "
                "rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo "
                "sigaltstack"},
    {"time", "alarm clock_getres clock_gettime clock_nanosleep getitimer setitimer gettimeofday "
             "nanosleep time times timer_create timer_delete timer_getoverrun timer_gettime "
             "timer_settime"},
    {"the rest", "getrandom sysinfo uname"},
};

/* Calls whose argument N is a mode: setuid and setgid bits get EPERM, because a file in FILES_DIR
 * keeps them on the host. */
static const struct {
    const char *name;
    unsigned    argument;
} modes[] = {
    {"chmod", 1},   {"fchmod", 1}, {"fchmodat", 2}, {"mkdir", 1},
    {"mkdirat", 2}, {"mknod", 1},  {"mknodat", 2},  {"creat", 1},
};

/* Calls that take a mode only when their flags say that a file may be created. */
static const struct {
    const char *name;
    unsigned    flags, mode;
} opens[] = {{"open", 1, 2}, {"openat", 2, 3}};

static const unsigned ioctls[] = {
    TCGETS,   TCSETS,     TCSETSW,  TCSETSF, TIOCGWINSZ, TIOCSWINSZ, TIOCGPGRP,  TIOCSPGRP,
    TIOCGPTN, TIOCSPTLCK, FIONREAD, FIONBIO, FIOCLEX,    FIONCLEX,   0x40049409, /* FICLONE: cp
                                                                                    tries it */
};

enum { SET_ID_BITS = 06000, TMPFILE_BIT = O_TMPFILE & ~O_DIRECTORY, SOCKET_TYPE_BITS = 0xf };

static scmp_filter_ctx ctx;

static void check(int r, const char *what)
{
    if (r < 0) {
        fprintf(stderr, "filter_gen: %s: %s\n", what, strerror(-r));
        exit(1);
    }
}

static void rule(uint32_t action, const char *name, unsigned n, const struct scmp_arg_cmp *args)
{
    int nr = seccomp_syscall_resolve_name(name);

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

static void add_plain_rules(const char *names)
{
    char name[64];
    int  n;

    for (; sscanf(names, "%63s%n", name, &n) == 1; names += n)
        rule(SCMP_ACT_ALLOW, name, 0, NULL);
}

static void add_mode_rules(const char *name, unsigned n, struct scmp_arg_cmp args[2], unsigned mode)
{
    args[n] = masked(mode, SET_ID_BITS, 0);
    rule(SCMP_ACT_ALLOW, name, n + 1, args);
    args[n] = masked(mode, SET_ID_BITS, 04000);
    rule(SCMP_ACT_ERRNO(EPERM), name, n + 1, args);
    args[n] = masked(mode, 02000, 02000);
    rule(SCMP_ACT_ERRNO(EPERM), name, n + 1, args);
}

/* No new namespaces. */
static void add_clone_rules(void)
{
    const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWTIME;
    struct scmp_arg_cmp args[1] = {masked(0, namespaces, 0)};

    rule(SCMP_ACT_ALLOW, "clone", 1, args);
}

/* posix_spawn, as make calls it, sets the effective ids to the real ones: all are 0 inside, so that
 * changes nothing, and is answered without the kernel being asked. Any other use stays ENOSYS. */
static void add_id_rules(void)
{
    const uint64_t      unchanged = 0xffffffff;
    struct scmp_arg_cmp args[3] = {masked(0, unchanged, unchanged), masked(1, unchanged, 0),
                                   masked(2, unchanged, unchanged)};

    rule(SCMP_ACT_ERRNO(0), "setresuid", 3, args);
    rule(SCMP_ACT_ERRNO(0), "setresgid", 3, args);
}

static void add_file_rules(void)
{
    struct scmp_arg_cmp args[2];

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        add_mode_rules(modes[i].name, 0, args, modes[i].argument);
    for (size_t i = 0; i < sizeof opens / sizeof opens[0]; i++) {
        args[0] = masked(opens[i].flags, O_CREAT | TMPFILE_BIT, 0);
        rule(SCMP_ACT_ALLOW, opens[i].name, 1, args);
        args[0] = masked(opens[i].flags, O_CREAT, O_CREAT);
        add_mode_rules(opens[i].name, 1, args, opens[i].mode);
        args[0] = masked(opens[i].flags, O_CREAT | TMPFILE_BIT, TMPFILE_BIT);
        add_mode_rules(opens[i].name, 1, args, opens[i].mode);
    }
    for (size_t i = 0; i < sizeof ioctls / sizeof ioctls[0]; i++) {
        args[0] = word(1, ioctls[i]);
        rule(SCMP_ACT_ALLOW, "ioctl", 1, args);
    }
}

/* Streams and datagrams of the ordinary kinds: no raw or packet sockets, no protocol that would
 * make the kernel load a module. */
static void add_socket_rules(void)
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
        rule(SCMP_ACT_ALLOW, "socket", 3, args);
    }
    args[0] = word(0, AF_UNIX);
    rule(SCMP_ACT_ALLOW, "socket", 1, args);
    rule(SCMP_ACT_ALLOW, "socketpair", 1, args);
    args[0] = word(0, AF_NETLINK); /* os.networkInterfaces() */
    args[1] = word(2, NETLINK_ROUTE);
    rule(SCMP_ACT_ALLOW, "socket", 2, args);
}

/* Of oneself only: init has the same uid. And the core limit stays at 1, which alone keeps the
 * kernel from starting a core_pattern program, as root and outside, with what crashed in here. */
static void add_limit_rules(void)
{
    struct scmp_arg_cmp args[3];

    args[0] = word(0, 0);
    rule(SCMP_ACT_ALLOW, "sched_setaffinity", 1, args);
    for (unsigned i = 0; i < RLIM_NLIMITS; i++) {
        if (i == RLIMIT_CORE)
            continue;
        args[1] = word(1, i);
        rule(SCMP_ACT_ALLOW, "prlimit64", 2, args);
        args[2] = word(0, i);
        rule(SCMP_ACT_ALLOW, "setrlimit", 1, args + 2);
    }
    args[1] = word(1, RLIMIT_CORE);
    args[2] = (struct scmp_arg_cmp){2, SCMP_CMP_EQ, 0, 0}; /* asking is fine */
    rule(SCMP_ACT_ALLOW, "prlimit64", 3, args);
    args[0] = word(0, PRIO_PROCESS);
    args[1] = word(1, 0);
    rule(SCMP_ACT_ALLOW, "setpriority", 2, args);
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
    printf("/* Made by filter_gen.c. */\n#include <linux/filter.h>\n\n"
           "static const struct sock_filter filter[] = {\n");
    while (fread(&f, sizeof f, 1, raw) == 1)
        printf("    {0x%x, %u, %u, 0x%x},\n", f.code, f.jt, f.jf, f.k);
    printf("};\n");
    fclose(raw);
}

int main(int argc, char **argv)
{
    uint32_t arch = argc > 1 ? seccomp_arch_resolve_name(argv[1]) : 0;

    if (!arch) {
        fprintf(stderr, "usage: filter_gen ARCHITECTURE\n");
        return 2;
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
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        add_plain_rules(allowed[i].names);
    add_clone_rules();
    add_id_rules();
    add_file_rules();
    add_socket_rules();
    add_limit_rules();
    print_program();
    seccomp_release(ctx);
    return 0;
}
