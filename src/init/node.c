#include "init/node.h"

#include <ctype.h>
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
    if (*node)
        err_set(e, ERR_NOT_FOUND, "the image's %.100s does not run: %s", node, why);
    else
        err_set(e, ERR_NOT_FOUND, "the image has no 'node' on its PATH");
    e->sys = MESSAGE_NO_NODE;
    return -1;
}

static bool is_program(const char *path)
{
    struct stat st;

    return access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int node_place(struct err *e)
{
    static char paths[4096];
    const char *path = getenv("PATH"); /* there is one, see inherit.h */
    char        headers[4200];

    snprintf(paths, sizeof paths, "%s", path);
    for (char *rest = paths, *dir; (dir = strsep(&rest, ":"));) {
        snprintf(node, sizeof node, "%s/node", dir);
        if (dir[0] != '/' || !is_program(node))
            continue;
        snprintf(headers, sizeof headers, "%s/../include", dir); /* where they usually are */
        if (symlink(dir, "/opt/node/bin") < 0 || symlink(headers, "/opt/node/include") < 0)
            return err_sys(e, "link /opt/node");
        return 0;
    }
    *node = '\0';
    return lack(e, NULL);
}

/* Init's own stdin and stdout are the pipe; its signals are as programs do not expect them. */
static int start(const char *const *argv, int out_fd, int said_fd, pid_t *ret)
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
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out_fd, 1);
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

/* Of what it wrote, from its first byte on. */
static void read_text(int fd, char *ret, size_t size)
{
    ssize_t n = pread(fd, ret, size - 1, 0);

    ret[n > 0 ? n : 0] = '\0';
}

static int explain_start(struct err *e)
{
    if (errno == ENOENT) /* the file itself is there */
        return lack(e, "what loads it is missing");
    if (errno == ENOEXEC || errno == EACCES || errno == ELIBBAD)
        return lack(e, strerror(errno));
    return err_sys(e, "start %.100s", node);
}

static int explain_end(int status, int said_fd, struct err *e)
{
    char text[1024], why[REASON_MAX];

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return err_set(e, ERR_UNAVAILABLE, "%.100s was killed: is its memory too little?", node);
    read_text(said_fd, text, sizeof text);
    if (!reason_find(text, why, sizeof why))
        snprintf(why, sizeof why, "it ended with %s %d", WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return lack(e, why);
}

int node_try(struct err *e)
{
    const char *const argv[] = {node, "--version", NULL};
    autofd int        out = memfd_create("out", MFD_CLOEXEC);
    autofd int        said = memfd_create("said", MFD_CLOEXEC);
    char              version[16];
    pid_t             pid;
    int               status = 0;
    bool              has_ended;

    if (out < 0 || said < 0)
        return err_sys(e, "memfd_create");
    if (start(argv, out, said, &pid) < 0)
        return explain_start(e);
    has_ended = await(pid, &status);
    if (getpid() == 1) /* else it is not in a container, and all are many */
        kill(-1, SIGKILL);
    if (!has_ended)
        return lack(e, "it does not tell its version");
    if (status != 0)
        return explain_end(status, said, e);
    read_text(out, version, sizeof version);
    return version[0] == 'v' && isdigit((unsigned char)version[1])
               ? 0
               : lack(e, "it does not tell its version");
}
