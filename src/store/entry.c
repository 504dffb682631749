#include "store/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/lock.h"

static const char part_suffix[] = ".part";

static int part_name(const char *name, char ret[NAME_MAX + 1], struct err *e)
{
    int n = snprintf(ret, NAME_MAX + 1, ".%s%s", name, part_suffix);

    if (n > NAME_MAX)
        return err_set(e, ERR_INVALID, "%.80s: too long a name", name);
    return 0;
}

static bool is_part(const char *name)
{
    size_t n = strlen(name), suffix = sizeof part_suffix - 1;

    return *name == '.' && n > suffix + 1 && strcmp(name + n - suffix, part_suffix) == 0;
}

static int open_dir(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static DIR *list_dir(int dir_fd)
{
    autofd int fd = open_dir(dir_fd, "."); /* with a position of its own */
    DIR       *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        take_fd(&fd);
    return dir;
}

/* As deep as what unpack writes, no deeper: one descriptor a level. Errors show when the directory
 * itself is removed or filled again. */
static void remove_content(int dir_fd)
{
    DIR           *dir = list_dir(dir_fd);
    struct dirent *d;

    while (dir && (d = readdir(dir))) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        if (unlinkat(dir_fd, d->d_name, 0) == 0 || errno != EISDIR)
            continue;
        autofd int below = open_dir(dir_fd, d->d_name);
        if (below >= 0)
            remove_content(below);
        unlinkat(dir_fd, d->d_name, AT_REMOVEDIR);
    }
    if (dir)
        closedir(dir);
}

int entry_look(int parent_fd, const char *name, entry_check *check, struct err *e)
{
    autofd int fd = open_dir(parent_fd, name);

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return err_set(e, ERR_INVALID, "it is no directory");
    if (fd < 0)
        return err_sys(e, "%s in the store", name);
    return check(fd, e) < 0 ? -1 : 1;
}

/* An fd with the lock on the part directory; -1 with errno 0 when it was renamed or removed while
 * we waited. */
static int lock_part(int parent_fd, const char *part, const char *name)
{
    autofd int fd = -1;

    if (mkdirat(parent_fd, part, 0755) < 0 && errno != EEXIST)
        return -1;
    fd = open_dir(parent_fd, part);
    if (fd < 0 && errno != ENOENT)
        return -1;
    if (fd >= 0 && lock_wait(fd, name) < 0)
        return -1;
    if (fd >= 0 && lock_is_still(parent_fd, part, fd))
        return take_fd(&fd);
    errno = 0;
    return -1;
}

int entry_begin(int parent_fd, const char *name, entry_check *check, struct entry *ret,
                struct err *e)
{
    char       part[NAME_MAX + 1];
    autofd int fd = -1;

    TRY(part_name(name, part, e));
    while (fd < 0) {
        if (entry_look(parent_fd, name, check, NULL) == 1)
            return 1;
        fd = lock_part(parent_fd, part, name);
        if (fd < 0 && errno != 0)
            return err_sys(e, "make %s in the store", part);
    }
    if (entry_look(parent_fd, name, check, NULL) == 1) { /* it came between our look and our lock */
        unlinkat(parent_fd, part, AT_REMOVEDIR);
        return 1;
    }
    remove_content(fd);
    ret->parent_fd = parent_fd;
    ret->dir_fd = take_fd(&fd);
    snprintf(ret->name, sizeof ret->name, "%s", name);
    return 0;
}

static void remove_part(int parent_fd, const char *part, int dir_fd)
{
    remove_content(dir_fd);
    unlinkat(parent_fd, part, AT_REMOVEDIR);
}

/* A damaged entry, which may be a file or a link; then there is no fd. */
static void remove_damaged(int parent_fd, const char *name, int dir_fd)
{
    if (dir_fd >= 0)
        remove_part(parent_fd, name, dir_fd);
    else
        unlinkat(parent_fd, name, 0);
}

/* What stands in the way is a damaged one: it takes our place, and goes. */
static int exchange(int parent_fd, const char *part, const char *name)
{
    autofd int old = open_dir(parent_fd, name);

    if (renameat2(parent_fd, part, parent_fd, name, RENAME_EXCHANGE) == 0) {
        remove_damaged(parent_fd, part, old);
        return 0;
    }
    if (errno != EINVAL)
        return -1;
    remove_damaged(parent_fd, name, old); /* a file system that cannot exchange */
    return renameat(parent_fd, part, parent_fd, name);
}

static int put_in_place(int parent_fd, const char *part, const char *name)
{
    if (renameat(parent_fd, part, parent_fd, name) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
        return -1;
    return exchange(parent_fd, part, name);
}

int entry_commit(struct entry *entry, struct err *e)
{
    char part[NAME_MAX + 1];

    /* One sync for all files, or the rename could reach the disk before them. */
    if (part_name(entry->name, part, e) < 0 || syncfs(entry->dir_fd) < 0 ||
        put_in_place(entry->parent_fd, part, entry->name) < 0) {
        err_sys(e, "put %s into the store", entry->name);
        entry_abort(entry);
        return -1;
    }
    fd_close(&entry->dir_fd);
    return 0;
}

void entry_abort(struct entry *entry)
{
    char part[NAME_MAX + 1];

    if (part_name(entry->name, part, NULL) == 0)
        remove_part(entry->parent_fd, part, entry->dir_fd);
    fd_close(&entry->dir_fd);
}

void entry_sweep(int parent_fd)
{
    DIR           *dir = list_dir(parent_fd);
    struct dirent *d;

    while (dir && (d = readdir(dir))) {
        autofd int part = is_part(d->d_name) ? open_dir(parent_fd, d->d_name) : -1;
        if (part >= 0 && lock_take(part, LOCK_EX | LOCK_NB) == 0 &&
            lock_is_still(parent_fd, d->d_name, part))
            remove_part(parent_fd, d->d_name, part);
    }
    if (dir)
        closedir(dir);
}
