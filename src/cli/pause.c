#include "cli/pause.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum { END_MS = 5000, LOOK_MS = 10, CHILDREN_MAX = 1 << 12, NAME_BYTES_MAX = 64 };

/* By podman's own words for it; where there is a catatonit, it does the same. */
static bool is_pause(long pid)
{
    autofree char *path = str_format("/proc/%ld/comm", pid), *name = NULL;

    if (file_read_text(AT_FDCWD, path, NAME_BYTES_MAX, &name, NULL) < 0)
        return false;
    return strcmp(name, "podman pause\n") == 0 || strcmp(name, "catatonit\n") == 0;
}

static ino_t user_namespace(const char *pid)
{
    autofree char *path = str_format("/proc/%s/ns/user", pid);
    struct stat    st;

    return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Another podman of this user may have come into its namespaces meanwhile. */
static bool is_shared(long pid)
{
    autofree char       *own = str_format("%ld", pid);
    ino_t                wanted = user_namespace(own);
    DIR                 *proc = opendir("/proc");
    const struct dirent *d;
    bool                 found = false;

    while (proc && !found && (d = readdir(proc)))
        found = isdigit((unsigned char)d->d_name[0]) && strcmp(d->d_name, own) != 0 &&
                user_namespace(d->d_name) == wanted;
    if (proc)
        closedir(proc);
    return found;
}

/* Only when nobody else is left, who may still need its namespaces: whoever removes a container. */
static void end_pauses(void)
{
    autofree char *path = str_format("/proc/self/task/%d/children", (int)getpid()), *list = NULL;
    char          *rest, *end;
    bool           are_all = true;

    if (file_read_text(AT_FDCWD, path, CHILDREN_MAX, &list, NULL) < 0)
        return;
    for (long pid = strtol(rest = list, &end, 10); end != rest; pid = strtol(rest = end, &end, 10))
        are_all = are_all && is_pause(pid) && !is_shared(pid);
    if (!are_all)
        return;
    for (long pid = strtol(rest = list, &end, 10); end != rest; pid = strtol(rest = end, &end, 10))
        kill((pid_t)pid, SIGKILL);
}

bool pause_adopt(void)
{
    return waitpid(-1, NULL, WNOHANG) < 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void pause_end(void)
{
    int64_t end_ms = clock_ms() + END_MS;
    pid_t   pid = 0;

    while (clock_ms() < end_ms && (pid = waitpid(-1, NULL, WNOHANG)) >= 0)
        if (pid == 0) {
            end_pauses();
            poll(NULL, 0, LOOK_MS);
        }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
