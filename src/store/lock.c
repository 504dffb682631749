#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { SILENT_MS = 1000, PAUSE_MS = 20 };

int lock_take(int fd, int how)
{
    int done;

    do
        done = flock(fd, how);
    while (done < 0 && errno == EINTR);
    return done;
}

int lock_wait(int fd, const char *what)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

    for (int ms = 0; ms < SILENT_MS; ms += PAUSE_MS) {
        if (lock_take(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK)
            return -1;
        nanosleep(&pause, NULL);
    }
    dprintf(2, "waiting for another jerboa that fetches %s\n", what);
    return lock_take(fd, LOCK_EX);
}

bool lock_is_still(int dir_fd, const char *name, int fd)
{
    struct stat there, ours;

    return fstatat(dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &ours) == 0 &&
           there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}
