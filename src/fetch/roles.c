#include "fetch/roles.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "confine/confine.h"
#include "store/store.h"

#define TARBALL_BYTES (512LL << 20) /* longer than registry.c takes */
#define MEMBER_BYTES (2LL << 30)    /* as long as a whole archive may be: npm/tarball.c */

enum { WORD = -1, PARTS_MAX = 4 };

/* ---- system calls ---- */

#define TO_LIVE                                                                                    \
    CALL(read), CALL(write), CALL(close), CALL(lseek), CALL(fstat), CALL(newfstatat), CALL(mmap),  \
        CALL(munmap), CALL(mremap), CALL(mprotect), CALL(madvise), CALL(brk), CALL(futex),         \
        CALL(rt_sigaction), CALL(rt_sigprocmask), CALL(rt_sigreturn), CALL(restart_syscall),       \
        CALL(getrandom), CALL(clock_gettime), CALL(gettimeofday), CALL(exit), CALL(exit_group)

/* fcntl without F_SETOWN and leases: by those the kernel signals whomever the file is told. */
#define TO_TEND_DESCRIPTORS                                                                        \
    CALL_IF(fcntl, {1, WORD, F_GETFD}), CALL_IF(fcntl, {1, WORD, F_SETFD}),                        \
        CALL_IF(fcntl, {1, WORD, F_GETFL}), CALL_IF(fcntl, {1, WORD, F_SETFL}),                    \
        CALL_IF(fcntl, {1, WORD, F_DUPFD}), CALL_IF(fcntl, {1, WORD, F_DUPFD_CLOEXEC}), CALL(dup)

/* Landlock has no say in modes: so none by a path, and none that is more than our own files have.
 */
#define TO_SET_MODES                                                                               \
    CALL_IF(fchmod, {1, WORD, 0755}), CALL_IF(fchmod, {1, WORD, 0644}),                            \
        CALL_IF(fchmod, {1, WORD, 0700})

static const struct call untar_calls[] = {TO_LIVE, CALL(openat2), CALL(mkdirat)};

static const struct call keeper_calls[] = {
    TO_LIVE,
    /* files */
    CALL(openat), CALL(openat2), CALL(getdents64), CALL(mkdirat), CALL(renameat), CALL(renameat2),
    CALL(unlinkat), CALL(symlinkat), CALL(readlinkat), CALL(faccessat), CALL(faccessat2),
    TO_SET_MODES, CALL(ftruncate), CALL(utimensat), CALL(fsync), CALL(fdatasync), CALL(syncfs),
    CALL(flock), TO_TEND_DESCRIPTORS, CALL(pread64), CALL(writev), CALL(statx), CALL(fstatfs),
    CALL(getcwd),
#if defined(__x86_64__)
    CALL(open), CALL(stat), CALL(lstat), CALL(access), CALL(readlink), CALL(mkdir), CALL(rename),
    CALL(unlink), CALL(rmdir), CALL(dup2),
#endif
    CALL_IF(ioctl, {1, WORD, TCGETS}), CALL_IF(ioctl, {1, WORD, TIOCGWINSZ}), /* isatty */
    /* the line, by a socket that is there, and the untar, by a fork */
    CALL(sendmsg), CALL(recvmsg), CALL(pipe2), CALL(dup3), CALL(wait4), CALL(set_robust_list),
    CALL(gettid), CALL(getpid), CALL(getppid),
    CALL_IF(clone, {0, CLONE_VM | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET, 0}),
    CALL_IF(prctl, {0, WORD, PR_SET_PDEATHSIG}), CALL_IF(prctl, {0, WORD, PR_SET_NAME}),
    /* the walls of the untar: it can only give more up */
    CALL_IF(prctl, {0, WORD, PR_SET_NO_NEW_PRIVS}), CALL(capget), CALL(capset),
    CALL_IF(prlimit64, {0, WORD, 0}), CALL(landlock_create_ruleset), CALL(landlock_add_rule),
    CALL(landlock_restrict_self), CALL(seccomp),
    /* the rest */
    CALL(nanosleep), CALL(clock_nanosleep), CALL(getuid), CALL(geteuid), CALL(umask)};

static const struct call line_calls[] = {
    TO_LIVE,
    /* connections; AF_UNIX would be agents, buses and daemons of this machine */
    CALL_IF(socket, {0, WORD, AF_INET}, {1, 0xf, SOCK_STREAM}),
    CALL_IF(socket, {0, WORD, AF_INET}, {1, 0xf, SOCK_DGRAM}),
    CALL_IF(socket, {0, WORD, AF_INET6}, {1, 0xf, SOCK_STREAM}),
    CALL_IF(socket, {0, WORD, AF_INET6}, {1, 0xf, SOCK_DGRAM}),
    CALL_IF(socket, {0, WORD, AF_NETLINK}, {2, WORD, NETLINK_ROUTE}), /* getaddrinfo */
    CALL_IF(socketpair, {0, WORD, AF_UNIX}),                          /* libcurl wakes itself */
    CALL(connect), CALL(bind), CALL(getsockname), CALL(getpeername), CALL(getsockopt),
    CALL(setsockopt), CALL(shutdown), CALL(sendto), CALL(sendmsg), CALL(sendmmsg), CALL(recvfrom),
    CALL(recvmsg), CALL(recvmmsg), CALL(writev), CALL(readv),
    /* waiting */
    CALL(ppoll), CALL(pselect6), CALL(eventfd2), CALL(pipe2), CALL(nanosleep),
    CALL(clock_nanosleep), CALL(clock_getres), CALL(sched_yield),
    /* files, to read; and the one that is passed to it */
    CALL(openat), CALL(statx), CALL(fstatfs), CALL(faccessat), CALL(faccessat2), CALL(readlinkat),
    CALL(getdents64), CALL(pread64), TO_TEND_DESCRIPTORS, CALL(getcwd), CALL(ftruncate),
#if defined(__x86_64__)
    CALL(poll), CALL(select), CALL(pipe), CALL(open), CALL(stat), CALL(lstat), CALL(access),
    CALL(readlink), CALL(time),
#endif
    CALL_IF(ioctl, {1, WORD, TCGETS}), CALL_IF(ioctl, {1, WORD, TIOCGWINSZ}),
    CALL_IF(ioctl, {1, WORD, FIONBIO}), CALL_IF(ioctl, {1, WORD, FIONREAD}),
    /* the thread in which libcurl looks names up */
    CALL_IF(clone, {0, CLONE_THREAD, CLONE_THREAD}), CALL(set_robust_list), CALL(rseq),
    CALL(sched_getaffinity), CALL(sigaltstack), CALL(gettid),
    /* the rest */
    CALL(getpid), CALL(getppid), CALL(getuid), CALL(geteuid), CALL(getgid), CALL(getegid),
    CALL(uname), CALL(sysinfo), CALL_IF(prlimit64, {0, WORD, 0}, {2, WORD, 0}), /* to read */
    CALL(getrusage)};

#define CALLS(role) .calls = role##_calls, .n_calls = sizeof role##_calls / sizeof role##_calls[0]

/* ---- roles ---- */

/* Certificates; what the resolver reads, and where links to it lead; libraries that it loads. */
int roles_become_line(const char *cafile, struct err *e)
{
    const struct confine_place places[] = {
        {"/usr/lib", -1, CONFINE_READ},
        {"/usr/lib64", -1, CONFINE_READ},
        {"/usr/share", -1, CONFINE_READ},
        {"/lib", -1, CONFINE_READ},
        {"/lib64", -1, CONFINE_READ},
        {"/etc/ld.so.cache", -1, CONFINE_READ},
        {"/etc/ssl/certs", -1, CONFINE_READ},
        {"/etc/ssl/openssl.cnf", -1, CONFINE_READ},
        {"/etc/ca-certificates", -1, CONFINE_READ},
        {"/etc/pki/tls/certs", -1, CONFINE_READ},
        {"/etc/pki/ca-trust/extracted", -1, CONFINE_READ},
        {"/etc/nsswitch.conf", -1, CONFINE_READ},
        {"/etc/resolv.conf", -1, CONFINE_READ},
        {"/run/systemd/resolve", -1, CONFINE_READ},
        {"/run/resolvconf", -1, CONFINE_READ},
        {"/run/NetworkManager", -1, CONFINE_READ},
        {"/etc/hosts", -1, CONFINE_READ},
        {"/etc/host.conf", -1, CONFINE_READ},
        {"/etc/gai.conf", -1, CONFINE_READ},
        {"/etc/services", -1, CONFINE_READ},
        {"/etc/localtime", -1, CONFINE_READ},
        {"/dev/urandom", -1, CONFINE_READ},
        {cafile ? cafile : "/nonexistent", -1, CONFINE_READ},
    };

    return confine_enter(&(struct confine){.role = "line",
                                           .places = places,
                                           .n_places = sizeof places / sizeof places[0],
                                           CALLS(line),
                                           .connects = true,
                                           .is_hidden = true,
                                           .file_bytes = TARBALL_BYTES},
                         e);
}

int roles_become_keeper(const char *const *parts, struct err *e)
{
    static const char *const keep[] = {"JERBOA_HOME", "XDG_CACHE_HOME", "HOME", NULL};
    /* for iconv, OpenSSL, jansson */
    struct confine_place places[PARTS_MAX + 3] = {{"/usr/lib", -1, CONFINE_READ},
                                                  {"/etc/ssl/openssl.cnf", -1, CONFINE_READ},
                                                  {"/dev/urandom", -1, CONFINE_READ}};
    int                  fds[PARTS_MAX] = {-1, -1, -1, -1}, done = 0;
    struct confine       c = {.role = "keeper",
                              .places = places,
                              .n_places = 3,
                              CALLS(keeper),
                              .ends_children = true,
                              .of_others = true,
                              .file_bytes = MEMBER_BYTES};

    for (size_t i = 0; i < PARTS_MAX && parts[i] && done == 0; i++) {
        fds[i] = store_ensure(parts[i], e);
        places[c.n_places++] = (struct confine_place){NULL, fds[i], CONFINE_WRITE};
        done = fds[i] < 0 ? store_explain(e) : 0;
    }
    confine_forget_environment(c.role, keep);
    if (done == 0)
        done = confine_enter(&c, e);
    for (size_t i = 0; i < PARTS_MAX; i++)
        fd_close(&fds[i]);
    return done;
}

int roles_become_untar(int dir_fd, struct err *e)
{
    const struct confine_place place = {NULL, dir_fd, CONFINE_FILL};

    return confine_enter(&(struct confine){.role = "untar",
                                           .places = &place,
                                           .n_places = 1,
                                           CALLS(untar),
                                           .of_others = true,
                                           .file_bytes = MEMBER_BYTES},
                         e);
}
