#include "init/alone.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/inherit.h"
#include "init/node.h"
#include "jail/privilege.h"
#include "jail/redirect.h"

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
    TRY(node_place(e));
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
