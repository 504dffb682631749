/* memcheck LOGS PROGRAM [ARG…] - becomes the program under valgrind, with a helper beside it.
 *
 * Debian 12's valgrind does not know pidfd_open and openat2, without which no sandbox starts. So a
 * child of this process, which is not traced, makes those calls and passes the descriptors
 * (SCM_RIGHTS); build/libmemcheck-calls.so (memcheck_calls.c), which is preloaded, asks
 * it. The process keeps its pid, and the helper dies with it. Jails, init and Node run as ever. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "memcheck.h"

static long answer(const struct memcheck_call *call, int dir_fd)
{
    struct open_how how = {.flags = call->flags, .mode = call->mode, .resolve = call->resolve};
    long            r = -1;

    errno = EINVAL;
    if (call->nr == SYS_pidfd_open)
        r = syscall(SYS_pidfd_open, call->pid, 0);
    if (call->nr == SYS_openat2)
        r = syscall(SYS_openat2, dir_fd, call->path, &how, sizeof how);
    return r < 0 ? -errno : r;
}

static void serve_one(int client)
{
    struct memcheck_call call = {0};
    int                  dir_fd = AT_FDCWD, result_fd;
    long                 result;

    if (memcheck_receive(client, &call, sizeof call, &dir_fd) != sizeof call)
        return;
    result = answer(&call, dir_fd < 0 ? AT_FDCWD : dir_fd);
    result_fd = result < 0 ? -1 : (int)result;
    memcheck_send(client, &result, sizeof result, result_fd);
    if (result_fd >= 0)
        close(result_fd);
    if (dir_fd >= 0)
        close(dir_fd);
}

static void __attribute__((noreturn)) serve(int door, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) /* it died before */
        _exit(1);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    for (;;) {
        int client = accept4(door, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            _exit(1);
        serve_one(client);
        close(client);
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char               log[4200], preload[4200];
    const char        *command[64] = {0};
    int                n = 0, door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ssize_t            length = readlink("/proc/self/exe", preload, 4000);

    if (argc < 3 || argc > 40 || length < 0)
        return 99;
    preload[length] = 0;
    strcpy(strrchr(preload, '/'), "/libmemcheck-calls.so");
    snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "memcheck-%d", (int)getpid());
    if (door < 0 || bind(door, (struct sockaddr *)&a, sizeof a) < 0 || listen(door, 100) < 0)
        return 99;
    pid_t parent = getpid();
    if (fork() == 0)
        serve(door, parent);
    snprintf(log, sizeof log, "--log-file=%s/%%p.log", argv[1]);
    setenv("MEMCHECK_SOCKET", a.sun_path + 1, 1);
    setenv("LD_PRELOAD", preload, 1);
    for (const char *const *w =
             (const char *const[]){
                 "valgrind", "-q", "--vgdb=no", "--leak-check=full", "--show-leak-kinds=definite",
                 "--errors-for-leak-kinds=definite", "--trace-children=yes",
                 "--trace-children-skip=*/jerboa-jail,*/jerboa-init,*/node,*/sh,*/docker,*/podman",
                 log, NULL};
         *w; w++)
        command[n++] = *w;
    for (int i = 2; i <= argc; i++)
        command[n++] = argv[i];
    execvp("valgrind", (char *const *)command);
    return 99;
}
