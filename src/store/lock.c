#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

int lock_take(int fd, int how)
{
    int done;

    do
        done = flock(fd, how);
    while (done < 0 && errno == EINTR);
    return done;
}

bool lock_is_still(int dir_fd, const char *name, int fd)
{
    struct stat there, ours;

    return fstatat(dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &ours) == 0 &&
           there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
}
