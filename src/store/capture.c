#include "store/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

static int spawn(const char *path, const char *const *argv, int stdout_fd, bool is_quiet,
                 pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int                        failed;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, stdout_fd, 1);
    if (is_quiet)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    failed = posix_spawn(ret_pid, path, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    errno = failed;
    return failed ? -1 : 0;
}

/* 0 at the end of the output, -1 with errno (ETIMEDOUT) before it. */
static int read_output(int fd, int timeout_ms, struct capture *ret)
{
    int64_t end_ms = clock_ms() + timeout_ms;
    size_t  used = 0;
    char    dropped[512];

    for (;;) {
        int64_t       left_ms = timeout_ms < 0 ? -1 : end_ms - clock_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        size_t        room = sizeof ret->output - 1 - used;
        ssize_t       n = -1;
        int           ready = timeout_ms >= 0 && left_ms <= 0 ? 0 : poll(&p, 1, (int)left_ms);
        if (ready == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (ready > 0)
            n = room ? read(fd, ret->output + used, room) : read(fd, dropped, sizeof dropped);
        if (n < 0 && errno != EINTR)
            return -1;
        used += n > 0 && room ? (size_t)n : 0;
        ret->output[used] = '\0';
        if (n == 0)
            return 0;
    }
}

static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 127; /* someone ignores SIGCHLD: there is no status to be had */
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(const char *path, const char *const *argv, bool is_quiet, int timeout_ms,
               struct capture *ret, struct err *e)
{
    int        pipe_fds[2], read_errno = 0;
    autofd int read_fd = -1, write_fd = -1;
    pid_t      pid;

    *ret = (struct capture){0};
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    read_fd = pipe_fds[0];
    write_fd = pipe_fds[1];
    if (spawn(path, argv, write_fd, is_quiet, &pid) < 0)
        return err_sys(e, "run %s", path);
    fd_close(&write_fd);
    if (read_output(read_fd, timeout_ms, ret) < 0) {
        read_errno = errno;
        kill(pid, SIGKILL);
    }
    ret->status = reap(pid);
    ret->output[strcspn(ret->output, "\n")] = '\0';
    if (read_errno == ETIMEDOUT)
        return err_set(e, ERR_TIMEOUT, "%s did not end within %d ms", path, timeout_ms);
    errno = read_errno;
    return read_errno ? err_sys(e, "read from %s", path) : 0;
}

int capture_run(const char *path, const char *const *argv, int timeout_ms, struct capture *ret,
                struct err *e)
{
    return run(path, argv, false, timeout_ms, ret, e);
}

int capture_run_quietly(const char *path, const char *const *argv, int timeout_ms,
                        struct capture *ret, struct err *e)
{
    return run(path, argv, true, timeout_ms, ret, e);
}
