#include "store/downloads.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "store/lock.h"
#include "store/store.h"

enum { STALE_S = 24 * 60 * 60 };

static bool is_part(const char *name)
{
    return *name == '.' && str_ends(name + 1, ".part");
}

static bool is_any(const char *name)
{
    (void)name;
    return true;
}

/* Nobody writes it or uses it, which would take its lock, and it is as old. */
static bool is_stale(int dir_fd, const char *name, int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_mtim.tv_sec + STALE_S < time(NULL) &&
           lock_take(fd, LOCK_EX | LOCK_NB) == 0 && lock_is_still(dir_fd, name, fd);
}

static void drop(const char *part, bool (*is_meant)(const char *name))
{
    char           path[STORE_PATH_MAX];
    DIR           *dir = store_path(part, path, NULL) < 0 ? NULL : opendir(path);
    struct dirent *d;

    while (dir && (d = readdir(dir))) {
        autofd int fd = -1;
        if (!is_meant(d->d_name))
            continue;
        fd = openat(dirfd(dir), d->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && is_stale(dirfd(dir), d->d_name, fd))
            unlinkat(dirfd(dir), d->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

void downloads_sweep(void)
{
    drop("downloads", is_part);
}

void downloads_drop_old(void)
{
    drop("downloads", is_any);
    drop("certificates", is_any);
}
