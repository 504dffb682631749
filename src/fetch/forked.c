#include "fetch/forked.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t forked_start(const char *role, struct err *e)
{
    pid_t parent = getpid(), pid = fork();
    char  name[16]; /* as long as the kernel's */

    if (pid < 0)
        err_sys(e, "start a process");
    if (pid == 0) {
        snprintf(name, sizeof name, "fetch-%s", role);
        prctl(PR_SET_NAME, name);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || dup2(0, 1) < 0)
            _exit(1);
    }
    return pid;
}

int forked_reap(pid_t pid, const char *role, struct err *e)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_sys(e, "wait for the %s", role);
    if (WIFSIGNALED(status))
        return err_set(e, ERR_INTERNAL, "the %s of jerboa-fetch was ended by signal %d (%s)", role,
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return err_set(e, ERR_INTERNAL, "the %s of jerboa-fetch ended with status %d", role,
                       WEXITSTATUS(status));
    return 0;
}
