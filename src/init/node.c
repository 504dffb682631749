#include "init/node.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/reason.h"
#include "pipe/message.h"

enum { TRY_MS = 10000 }; /* it takes 5 */

static char node[4200]; /* as the image's PATH has it */

static int lack(struct err *e, const char *why)
{
    err_set(e, ERR_NOT_FOUND, "the image has no Node.js: %s", why);
    e->sys = MESSAGE_NO_NODE;
    return -1;
}

int node_place(struct err *e)
{
    static char paths[4096];
    const char *path = getenv("PATH"); /* there is one, see inherit.h */
    char        headers[4200];
    struct stat st;

    snprintf(paths, sizeof paths, "%s", path);
    for (char *rest = paths, *dir; (dir = strsep(&rest, ":"));) {
        snprintf(node, sizeof node, "%s/node", dir);
        if (dir[0] != '/' || access(node, X_OK) < 0 || stat(node, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        snprintf(headers, sizeof headers, "%s/../include", dir); /* where they usually are */
        if (symlink(dir, "/opt/node/bin") < 0 || symlink(headers, "/opt/node/include") < 0)
            return err_sys(e, "link /opt/node");
        return 0;
    }
    return lack(e, "there is no 'node' on its PATH");
}

/* Init's own stdin and stdout are the pipe; its signals are as programs do not expect them. */
static int start(const char *const *argv, int said_fd, pid_t *ret)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attributes;
    sigset_t                   none, all;
    int                        sys;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, 0, 1);
    posix_spawn_file_actions_adddup2(&files, said_fd, 2);
    sys = posix_spawn(ret, argv[0], &files, &attributes, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    errno = sys;
    return sys ? -1 : 0;
}

/* False: it has not ended in time, and is killed. SIGCHLD is blocked, see main.c. */
static bool await(pid_t pid, int *ret_status)
{
    int64_t  end_ms = clock_ms() + TRY_MS, left_ms = TRY_MS;
    sigset_t children;

    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    while (waitpid(pid, ret_status, WNOHANG) == 0) {
        if (left_ms <= 0) {
            kill(pid, SIGKILL);
            waitpid(pid, ret_status, 0);
            return false;
        }
        sigtimedwait(&children, NULL, &(struct timespec){left_ms / 1000, left_ms % 1000 * 1000000});
        left_ms = end_ms - clock_ms();
    }
    return true;
}

static int explain_start(struct err *e)
{
    char why[REASON_MAX];

    if (errno != ENOENT && errno != ENOEXEC && errno != EACCES && errno != ELIBBAD)
        return err_sys(e, "start %.100s", node);
    snprintf(why, sizeof why, "its %.100s does not run: %s", node, /* that file is there */
             errno == ENOENT ? "what loads it is missing" : strerror(errno));
    return lack(e, why);
}

static int explain_end(int status, int said_fd, struct err *e)
{
    char    text[1024], reason[REASON_MAX], why[REASON_MAX + 128];
    ssize_t n = pread(said_fd, text, sizeof text - 1, 0);

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return err_set(e, ERR_UNAVAILABLE, "%.100s was killed: is its memory too little?", node);
    text[n > 0 ? n : 0] = '\0';
    if (!reason_find(text, reason, sizeof reason))
        snprintf(reason, sizeof reason, "it ended with %s %d",
                 WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    snprintf(why, sizeof why, "its %.100s does not run: %s", node, reason);
    return lack(e, why);
}

int node_try(struct err *e)
{
    const char *const argv[] = {node, "--version", NULL};
    autofd int        said = memfd_create("said", MFD_CLOEXEC);
    pid_t             pid;
    int               status = 0;
    bool              has_ended;

    if (start(argv, said, &pid) < 0)
        return explain_start(e);
    has_ended = await(pid, &status);
    if (getpid() == 1) /* else it is not in a container, and all are many */
        kill(-1, SIGKILL);
    if (!has_ended)
        return lack(e, "its 'node --version' does not end");
    return status == 0 ? 0 : explain_end(status, said, e);
}
