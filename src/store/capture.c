#include "store/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum { PAUSE_MAX_MS = 60000 };

static int spawn(const char *path, const char *const *argv, int stdout_fd, int stderr_fd,
                 pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int                        failed;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, stdout_fd, 1);
    if (stderr_fd >= 0)
        posix_spawn_file_actions_adddup2(&actions, stderr_fd, 2);
    failed = posix_spawn(ret_pid, path, &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    errno = failed;
    return failed ? -1 : 0;
}

struct source {
    int    fd;
    char  *to;
    size_t size, used;
};

/* What is there at this moment; what does not fit is dropped. As read: 0 at its end. */
static ssize_t take(struct source *s)
{
    char    dropped[512];
    size_t  room = s->size - 1 - s->used;
    ssize_t n = room ? read(s->fd, s->to + s->used, room) : read(s->fd, dropped, sizeof dropped);

    s->used += n > 0 && room ? (size_t)n : 0;
    s->to[s->used] = '\0';
    return n;
}

/* 0 at the end of the output, -1 with errno (ETIMEDOUT) before it. What it says meanwhile is read,
 * too, so that it never waits for us; the end of that is not awaited: who outlives the program may
 * hold it. */
static int read_output(struct source *out, struct source *said, int64_t end_ms)
{
    for (;;) {
        int64_t       left_ms = end_ms == INT64_MAX ? -1 : end_ms - clock_ms();
        struct pollfd p[] = {{.fd = out->fd, .events = POLLIN}, {.fd = said->fd, .events = POLLIN}};
        ssize_t       n = -1;
        int           ready = end_ms != INT64_MAX && left_ms <= 0 ? 0 : poll(p, 2, (int)left_ms);
        if (ready == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (ready < 0 && errno != EINTR)
            return -1;
        if (ready > 0 && p[1].revents && take(said) == 0)
            said->fd = -1;
        if (ready < 0 || !p[0].revents)
            continue;
        n = take(out);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0)
            return 0;
    }
}

/* Its output has ended. It may still say much, and must not wait for us. *in_time: it was not
 * killed here. */
static int reap(pid_t pid, struct source *said, int64_t end_ms, bool *in_time)
{
    autofd int pid_fd = pidfd_open(pid, 0);
    int        status = 0;
    pid_t      ended;

    *in_time = true;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        struct pollfd p[] = {{.fd = said->fd, .events = POLLIN}, {.fd = pid_fd, .events = POLLIN}};
        int64_t       left_ms = end_ms - clock_ms();
        if (left_ms <= 0) {
            kill(pid, SIGKILL);
            *in_time = false;
        }
        /* No descriptor left for it: then it is looked at every millisecond. */
        int pause_ms = pid_fd < 0 || left_ms <= 0 ? 1
                       : left_ms > PAUSE_MAX_MS   ? PAUSE_MAX_MS
                                                  : (int)left_ms;
        if (poll(p, 2, pause_ms) > 0 && p[0].revents && take(said) == 0)
            said->fd = -1;
    }
    if (ended < 0)
        return 127; /* someone ignores SIGCHLD: there is no status to be had */
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run(const char *path, const char *const *argv, bool is_quiet, int timeout_ms,
               struct capture *ret, struct err *e)
{
    int        out_fds[2], said_fds[2] = {-1, -1}, read_errno = 0;
    int64_t    end_ms = timeout_ms < 0 ? INT64_MAX : clock_ms() + timeout_ms;
    autofd int out_read = -1, out_write = -1, said_read = -1, said_write = -1;
    bool       in_time;
    pid_t      pid;

    *ret = (struct capture){0};
    if (pipe2(out_fds, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    out_read = out_fds[0], out_write = out_fds[1];
    if (is_quiet && pipe2(said_fds, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    said_read = said_fds[0], said_write = said_fds[1];
    if (is_quiet)
        fd_set_nonblock(said_read, true);
    if (spawn(path, argv, out_write, said_write, &pid) < 0)
        return err_sys(e, "run %s", path);
    fd_close(&out_write);
    fd_close(&said_write);
    struct source out = {.fd = out_read, .to = ret->output, .size = sizeof ret->output},
                  said = {.fd = said_read, .to = ret->said, .size = sizeof ret->said};
    if (read_output(&out, &said, end_ms) < 0) {
        read_errno = errno;
        kill(pid, SIGKILL);
    }
    ret->status = reap(pid, &said, end_ms, &in_time);
    if (!in_time)
        read_errno = ETIMEDOUT;
    while (said.fd >= 0 && said.used + 1 < said.size && take(&said) > 0)
        ; /* its last words, which it may have said as it ended; who outlives it may go on */
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
