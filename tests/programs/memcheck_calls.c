/* memcheck_calls - preloaded below valgrind: system calls that it does not know are made by the
 * helper of memcheck.c, and filters of system calls are not installed, because valgrind's own calls
 * would not pass them. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "memcheck.h"

int pidfd_open(pid_t pid, unsigned flags);
int pidfd_send_signal(int fd, int number, siginfo_t *info, unsigned flags);

static long raw(long nr, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long          r;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (r < 0 && r > -4096) {
        errno = (int)-r;
        return -1;
    }
    return r;
}

static struct sockaddr_un helper = {.sun_family = AF_UNIX};

/* Before the program forgets its environment. */
static void __attribute__((constructor)) find_helper(void)
{
    const char *name = getenv("MEMCHECK_SOCKET");

    snprintf(helper.sun_path + 1, sizeof helper.sun_path - 1, "%s", name ? name : "");
}

static int ask(const struct memcheck_call *call, int dir_fd)
{
    int  door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd = -1;
    long result = -ENOSYS;

    if (door >= 0 && connect(door, (struct sockaddr *)&helper, sizeof helper) == 0 &&
        memcheck_send(door, call, sizeof *call, dir_fd) > 0)
        memcheck_receive(door, &result, sizeof result, &fd);
    close(door);
    if (fd >= 0)
        return fd;
    errno = result < 0 ? (int)-result : EMFILE;
    return -1;
}

int pidfd_open(pid_t pid, unsigned flags)
{
    struct memcheck_call call = {.nr = SYS_pidfd_open, .pid = pid};

    (void)flags;
    return ask(&call, -1);
}

/* The number is the right one: those who call this have not waited for it yet. */
int pidfd_send_signal(int fd, int number, siginfo_t *info, unsigned flags)
{
    char  path[64], line[200];
    int   pid = -1;
    FILE *f;

    (void)info, (void)flags;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    f = fopen(path, "re");
    if (!f)
        return -1;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Pid: %d", &pid) == 1)
            break;
    fclose(f);
    errno = ESRCH;
    return pid > 0 ? kill(pid, number) : -1;
}

long syscall(long nr, ...)
{
    va_list ap;
    long    v[6];

    va_start(ap, nr);
    for (int i = 0; i < 6; i++)
        v[i] = va_arg(ap, long);
    va_end(ap);
    if (nr == SYS_seccomp)
        return 0;
    if (nr != SYS_openat2)
        return raw(nr, v[0], v[1], v[2], v[3], v[4], v[5]);
    const struct open_how *how = (const struct open_how *)v[2];
    struct memcheck_call   call = {
          .nr = nr, .flags = how->flags, .mode = how->mode, .resolve = how->resolve};
    snprintf(call.path, sizeof call.path, "%s", (const char *)v[1]);
    return ask(&call, (int)v[0]);
}
