#include "jail/cgroup_kill.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>

#include "base/cgroup_file.h"
#include "base/fd.h"

/* Whether a line of /proc/PID/cgroup ends in the path, or goes on below it. */
static bool has_path(const char *text, const char *path)
{
    for (const char *p = text; (p = strstr(p, path)); p++)
        if (strchr("\n/", p[strlen(path)]))
            return true;
    return false;
}

/* Kills one process, if it is still the one that the group listed: between the list and the signal
 * its pid may have become another's. */
static void kill_member(pid_t pid, const char *group_path)
{
    autofd int     fd = pidfd_open(pid, 0);
    autofree char *text = NULL;
    char           path[64];

    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    if (fd < 0 || file_read_text(AT_FDCWD, path, 1 << 16, &text, NULL) < 0)
        return;
    if (has_path(text, group_path))
        pidfd_send_signal(fd, SIGKILL, NULL, 0);
}

/* One round over the members; returns how many there were. */
static int kill_members(int dir, const char *group_path)
{
    autofree char *text = NULL;
    char          *save = NULL;
    int            n = 0;

    if (file_read_text(dir, "cgroup.procs", 64 << 20, &text, NULL) < 0)
        return errno == ENODEV || errno == ENOENT ? 0 : 1; /* not to be read is not empty */
    for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save), n++)
        kill_member((pid_t)atol(p), group_path);
    return n;
}

void cgroup_kill_pause(void)
{
    struct timespec t = {0, 1000000};

    nanosleep(&t, NULL);
}

/* Nearly always there is nobody left. Else, with pids.max at 0, nothing can fork any more, so two
 * or three rounds suffice, unless the kernel takes its time to let a member die: the bound is for
 * those. */
void cgroup_kill_listed(int dir, const char *path)
{
    if (kill_members(dir, path) == 0)
        return;
    cgroup_file_put(dir, "pids.max", "0", NULL);
    for (int round = 0; round < 2000 && kill_members(dir, path) > 0; round++)
        if (round > 0)
            cgroup_kill_pause();
}
