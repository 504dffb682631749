#include "loop/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

static void on_exit_event(evutil_socket_t fd, short what, void *arg)
{
    struct child *c = arg;
    int           status;

    (void)fd;
    (void)what;
    pid_t reaped = waitpid(c->pid, &status, WNOHANG);
    if (reaped == 0)
        return;
    if (reaped < 0)
        status = 0; /* somebody else took it; gone it is */
    c->pid = 0;
    event_del(c->event);
    c->exited(c->owner, status);
}

static int spawn(pid_t *ret, const char *path, const char *const *argv, const char *const *env,
                 const struct child_fd *fds)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    sigset_t                   none, all;
    const char *const          none_set[] = {NULL};
    int                        r;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all); /* what we ignore is our affair: SIGPIPE */
    for (; fds->from >= 0; fds++)
        if (fds->to == CHILD_DIRECTORY)
            posix_spawn_file_actions_addfchdir_np(&actions, fds->from);
        else
            posix_spawn_file_actions_adddup2(&actions, fds->from, fds->to);
    r = posix_spawn(ret, path, &actions, &attributes, (char *const *)argv,
                    (char *const *)(env ? env : none_set));
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return r;
}

int child_start(struct child *c, struct event_base *base, const char *path, const char *const *argv,
                const char *const *env, const struct child_fd *fds,
                void (*exited)(void *owner, int status), void *owner, struct err *e)
{
    pid_t pid;
    int   r = spawn(&pid, path, argv, env, fds);

    if (r != 0) {
        errno = r;
        return err_sys(e, "start %s", path);
    }
    *c = (struct child){.pid = pid, .pid_fd = pidfd_open(pid, 0), .exited = exited, .owner = owner};
    c->event =
        c->pid_fd < 0 ? NULL : event_new(base, c->pid_fd, EV_READ | EV_PERSIST, on_exit_event, c);
    if (!c->event || event_add(c->event, NULL) < 0) {
        err_sys(e, "watch %s", path);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        c->pid = 0;
        child_done(c);
        return -1;
    }
    return 0;
}

void child_kill(struct child *c)
{
    if (c->pid > 0)
        pidfd_send_signal(c->pid_fd, SIGKILL, NULL, 0);
}

void child_wake(struct child *c)
{
    if (c->pid > 0)
        pidfd_send_signal(c->pid_fd, SIGCONT, NULL, 0);
}

static void reap(struct child *c)
{
    while (c->pid > 0 && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
}

bool child_wait(struct child *c, int ms)
{
    int64_t       until_ms = clock_ms() + ms;
    struct pollfd p = {c->pid_fd, POLLIN, 0};
    int           ready = 0;

    while (c->pid > 0 && ready <= 0) {
        int64_t left = until_ms - clock_ms();
        ready = poll(&p, 1, left > 0 ? (int)left : 0);
        if (ready == 0 || (ready < 0 && errno != EINTR))
            return false;
    }
    reap(c);
    return true;
}

void child_end(struct child *c)
{
    child_kill(c);
    reap(c);
}

/* Until it is reaped nobody else has its number, which is its group's, too. */
void child_end_all(struct child *c)
{
    if (c->pid > 0)
        kill(-c->pid, SIGKILL);
    child_end(c);
}

void child_done(struct child *c)
{
    if (c->event)
        event_free(c->event);
    c->event = NULL;
    if (c->pid_fd > 0)
        fd_close(&c->pid_fd);
}
