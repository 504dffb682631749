#include "init/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/offspring.h"

enum { TELL_MS = 2000 }; /* for a leader whose program is dead */

static void reap_all(void)
{
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

/* Its only descriptor is the one it tells by: what it inherited is init's. */
static void __attribute__((noreturn)) lead(pid_t program, int tell_fd)
{
    struct leader_report r = {0};
    struct rusage        own;
    sigset_t             all;
    pid_t                pid;

    fd_write_all(tell_fd, &program, sizeof program);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    if (dup2(tell_fd, 0) < 0 || syscall(SYS_close_range, 1, ~0U, 0) < 0)
        _exit(1);
    do
        pid = wait4(-1, &r.status, 0, &own);
    while (pid != program && (pid > 0 || errno == EINTR));
    if (waitpid(-1, NULL, WNOHANG) >= 0) {
        offspring_end(getpid());
        reap_all();
    }
    getrusage(RUSAGE_CHILDREN, &r.usage);
    r.usage.ru_maxrss = own.ru_maxrss;
    fd_write_all(0, &r, sizeof r);
    _exit(0);
}

pid_t leader_fork(int report_fd, int *ret_exit_fd)
{
    int   ends[2];
    pid_t leader, program;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    leader = fork();
    if (leader != 0) {
        close(ends[1]);
        if (leader < 0)
            close(ends[0]);
        else
            *ret_exit_fd = ends[0];
        return leader;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    program = fork();
    if (program < 0) {
        fd_write_all(report_fd, &errno, sizeof errno);
        _exit(127);
    }
    if (program > 0)
        lead(program, ends[1]);
    return 0;
}

static bool read_whole(int fd, void *to, size_t size)
{
    ssize_t n;

    do
        n = read(fd, to, size);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size;
}

pid_t leader_program(int exit_fd, pid_t leader)
{
    pid_t program;

    return read_whole(exit_fd, &program, sizeof program) ? program : leader;
}

bool leader_read(int exit_fd, struct leader_report *ret)
{
    return read_whole(exit_fd, ret, sizeof *ret);
}

void leader_end(pid_t leader, int exit_fd)
{
    struct pollfd p = {exit_fd, POLLIN, 0};

    offspring_end(leader);
    kill(leader, SIGCONT); /* code may have stopped it */
    if (poll(&p, 1, TELL_MS) <= 0)
        kill(leader, SIGKILL);
}
