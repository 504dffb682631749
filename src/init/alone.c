#include "init/alone.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/reason.h"
#include "init/inherit.h"
#include "jail/privilege.h"
#include "jail/redirect.h"
#include "pipe/message.h"

enum { LEAST_MS = 500 };

static int64_t began_ms;

/* Not every engine can mount a directory that is somebody else's than root's. */
static int give_away(const struct words *w, struct err *e)
{
    for (size_t i = 0; i < w->n_own; i++)
        if (lchown(w->own[i], w->uid, w->gid) < 0)
            return err_sys(e, "give %.60s to user %u of the container", w->own[i],
                           (unsigned)w->uid);
    return 0;
}

/* Becomes the owner of what the sandbox is shown. The capabilities stay until the next step. */
static int become_user(const struct words *w, struct err *e)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct   caps[2];

    if (setgroups(0, NULL) < 0 || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ||
        setresgid(w->gid, w->gid, w->gid) < 0 || setresuid(w->uid, w->uid, w->uid) < 0)
        return err_sys(e, "become user %u of the container", (unsigned)w->uid);
    if (syscall(SYS_capget, &header, caps) < 0)
        return err_sys(e, "capget");
    caps[0].effective = caps[0].permitted;
    caps[1].effective = caps[1].permitted;
    if (syscall(SYS_capset, &header, caps) < 0)
        return err_sys(e, "capset");
    return prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0
               ? err_sys(e, "prctl")
               : 0;
}

static int run_quietly(const char *const *argv, int said_fd)
{
    posix_spawn_file_actions_t actions;
    pid_t                      pid;
    int                        status = -1;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1); /* init's own are the pipe */
    posix_spawn_file_actions_adddup2(&actions, said_fd, 2);
    errno = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno)
        return -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static int lack_node(struct err *e, const char *why)
{
    err_set(e, ERR_NOT_FOUND, "the image has no Node.js: %s", why);
    e->sys = MESSAGE_NO_NODE;
    return -1;
}

/* One of another machine, or without its libraries: else each run would be lost, and nobody would
 * know why. */
static int try_node(const char *node, struct err *e)
{
    const char *const argv[] = {node, "--version", NULL};
    autofd int        said = memfd_create("said", MFD_CLOEXEC);
    char              text[1024] = "", reason[REASON_MAX], why[REASON_MAX + 128];
    int               status = run_quietly(argv, said);

    if (status == 0)
        return 0;
    if (status < 0) /* said of a file that is there, ENOENT means what would load it */
        snprintf(text, sizeof text, "%s",
                 errno == ENOENT ? "what loads it is missing" : strerror(errno));
    else
        (void)!pread(said, text, sizeof text - 1, 0);
    if (!reason_find(text, reason, sizeof reason))
        snprintf(reason, sizeof reason, "it ended with %s %d",
                 WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    snprintf(why, sizeof why, "its %.100s does not run: %s", node, reason);
    return lack_node(e, why);
}

/* The image's Node, wherever its PATH has it, where the others have theirs (engine/layout.h). */
static int place_node(struct err *e)
{
    static char paths[4096];
    const char *path = getenv("PATH"); /* there is one, see inherit.h */
    char        node[4200], headers[4200];
    struct stat st;

    snprintf(paths, sizeof paths, "%s", path);
    for (char *rest = paths, *dir; (dir = strsep(&rest, ":"));) {
        snprintf(node, sizeof node, "%s/node", dir);
        if (dir[0] != '/' || access(node, X_OK) < 0 || stat(node, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        snprintf(headers, sizeof headers, "%s/../include", dir); /* where they usually are */
        if (symlink(dir, "/opt/node/bin") < 0 || symlink(headers, "/opt/node/include") < 0)
            return err_sys(e, "link /opt/node");
        return try_node(node, e);
    }
    return lack_node(e, "there is no 'node' on its PATH");
}

static int make_directories(struct err *e)
{
    if (mkdir("/workspace/files", 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make /workspace/files");
    return 0;
}

int alone_begin(const struct words *w, struct err *e)
{
    began_ms = clock_ms();
    umask(022);
    if (w->egress)
        TRY(redirect_to_init(w->places, w->n_places, e));
    TRY(give_away(w, e));
    TRY(become_user(w, e));
    TRY(privilege_drop_capabilities(e));
    TRY(privilege_forbid_new(e));
    TRY(privilege_limit_resources(w->fds, e));
    TRY(privilege_filter_calls(e));
    TRY(inherit_begin(e));
    TRY(place_node(e));
    return make_directories(e);
}

void alone_end(void)
{
    int64_t left_ms = began_ms + LEAST_MS - clock_ms();

    if (getpid() == 1) /* else it is not in a container, and all are many */
        kill(-1, SIGKILL);
    if (left_ms > 0)
        poll(NULL, 0, (int)left_ms);
}
