#include "store/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "store/lock.h"

enum { USE_MS = 60 * 1000 }; /* as exactly the last use is known */

static const char part_suffix[] = ".part", old_suffix[] = ".old";

static int part_name(const char *name, char ret[NAME_MAX + 1], struct err *e)
{
    int n = snprintf(ret, NAME_MAX + 1, ".%s%s", name, part_suffix);

    if (n > NAME_MAX)
        return err_set(e, ERR_INVALID, "%.80s: too long a name", name);
    return 0;
}

/* Begun and left, or replaced while it was in use. */
static bool is_leftover(const char *name)
{
    return *name == '.' && (str_ends(name + 1, part_suffix) || str_ends(name + 1, old_suffix));
}

int entry_look(int parent_fd, const char *name, entry_check *check, const void *arg, struct err *e)
{
    autofd int fd = tree_open_dir(parent_fd, name);

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return err_set(e, ERR_INVALID, "it is no directory");
    if (fd < 0)
        return err_sys(e, "%s in the store", name);
    return check(fd, arg, e) < 0 ? -1 : 1;
}

typedef int part_lock(int fd, const char *what);

static int lock_now(int fd, const char *what)
{
    (void)what;
    return lock_take(fd, LOCK_EX | LOCK_NB);
}

/* An fd with the lock on the part directory; -1 with errno 0 when it was renamed or removed while
 * we waited. */
static int lock_part(int parent_fd, const char *part, const char *name, part_lock *lock)
{
    autofd int fd = -1;

    if (mkdirat(parent_fd, part, 0755) < 0 && errno != EEXIST)
        return -1;
    fd = tree_open_dir(parent_fd, part);
    if (fd < 0 && errno != ENOENT)
        return -1;
    if (fd >= 0 && lock(fd, name) < 0)
        return -1;
    if (fd >= 0 && lock_is_still(parent_fd, part, fd))
        return take_fd(&fd);
    errno = 0;
    return -1;
}

struct wanted {
    int          parent_fd;
    const char  *name;
    entry_check *check;
    const void  *arg;
};

static bool is_there(const struct wanted *w)
{
    return entry_look(w->parent_fd, w->name, w->check, w->arg, NULL) == 1;
}

static int begin(const struct wanted *w, part_lock *lock, struct entry *ret, struct err *e)
{
    char       part[NAME_MAX + 1];
    autofd int fd = -1;

    TRY(part_name(w->name, part, e));
    while (fd < 0) {
        if (is_there(w))
            return 1;
        fd = lock_part(w->parent_fd, part, w->name, lock);
        if (fd < 0 && errno == EWOULDBLOCK)
            return 2;
        if (fd < 0 && errno != 0)
            return err_sys(e, "make %s in the store", part);
    }
    if (is_there(w)) { /* it came between our look and our lock */
        unlinkat(w->parent_fd, part, AT_REMOVEDIR);
        return 1;
    }
    tree_remove(fd);
    ret->parent_fd = w->parent_fd;
    ret->dir_fd = take_fd(&fd);
    snprintf(ret->name, sizeof ret->name, "%s", w->name);
    return 0;
}

int entry_begin(int parent_fd, const char *name, entry_check *check, const void *arg,
                struct entry *ret, struct err *e)
{
    return begin(&(struct wanted){parent_fd, name, check, arg}, lock_wait, ret, e);
}

int entry_begin_now(int parent_fd, const char *name, entry_check *check, const void *arg,
                    struct entry *ret, struct err *e)
{
    return begin(&(struct wanted){parent_fd, name, check, arg}, lock_now, ret, e);
}

static void remove_part(int parent_fd, const char *part, int dir_fd)
{
    tree_remove(dir_fd);
    unlinkat(parent_fd, part, AT_REMOVEDIR);
}

/* Out of the way under a name that nobody asks for: the directory's own number is in it. */
static int set_aside(int parent_fd, const char *name, int dir_fd, char ret_old[NAME_MAX + 1])
{
    struct stat st;

    if (fstat(dir_fd, &st) < 0)
        return -1;
    if (snprintf(ret_old, NAME_MAX + 1, ".%.180s.%ju%s", name, (uintmax_t)st.st_ino, old_suffix) >
        NAME_MAX)
        return -1;
    return renameat(parent_fd, name, parent_fd, ret_old);
}

/* A damaged or outdated entry, which may be a file or a link; then there is no fd. Who still holds
 * it keeps it. */
static void discard(int parent_fd, const char *name, int dir_fd)
{
    char old[NAME_MAX + 1];

    if (dir_fd < 0)
        unlinkat(parent_fd, name, 0);
    else if (set_aside(parent_fd, name, dir_fd, old) == 0 &&
             lock_take(dir_fd, LOCK_EX | LOCK_NB) == 0)
        remove_part(parent_fd, old, dir_fd);
}

/* What stands in the way does not pass the check: it takes our place, and goes. */
static int exchange(int parent_fd, const char *part, const char *name)
{
    autofd int old = tree_open_dir(parent_fd, name);

    if (renameat2(parent_fd, part, parent_fd, name, RENAME_EXCHANGE) == 0) {
        discard(parent_fd, part, old);
        return 0;
    }
    if (errno != EINVAL)
        return -1;
    discard(parent_fd, name, old); /* a file system that cannot exchange */
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

static int fail_commit(struct entry *entry, struct err *e)
{
    err_sys(e, "put %s into the store", entry->name);
    entry_abort(entry);
    return -1;
}

int entry_place(struct entry *entry, struct err *e)
{
    char part[NAME_MAX + 1];

    if (part_name(entry->name, part, e) < 0 ||
        put_in_place(entry->parent_fd, part, entry->name) < 0)
        return fail_commit(entry, e);
    lock_take(entry->dir_fd, LOCK_SH); /* it was the writer's alone */
    return 0;
}

int entry_commit(struct entry *entry, struct err *e)
{
    /* One sync for all files, or the rename could reach the disk before them. */
    if (syncfs(entry->dir_fd) < 0)
        return fail_commit(entry, e);
    TRY(entry_place(entry, e));
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
    DIR           *dir = tree_list(parent_fd);
    struct dirent *d;

    while (dir && (d = tree_next(dir))) {
        autofd int part = is_leftover(d->d_name) ? tree_open_dir(parent_fd, d->d_name) : -1;
        if (part >= 0 && lock_take(part, LOCK_EX | LOCK_NB) == 0 &&
            lock_is_still(parent_fd, d->d_name, part))
            remove_part(parent_fd, d->d_name, part);
    }
    if (dir)
        closedir(dir);
}

int64_t entry_used_ms(int dir_fd)
{
    struct stat st;

    if (fstat(dir_fd, &st) < 0)
        return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

/* Not each time: a call that only reads would wait for the disk's journal now and then. A store
 * that we may only read keeps no such times. */
static void note_use(int fd)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (llabs((int64_t)now.tv_sec * 1000 - entry_used_ms(fd)) > USE_MS)
        futimens(fd, NULL);
}

/* A lock that cannot be had (a file system without) is no obstacle: who removes needs one, too. */
int entry_hold(int parent_fd, const char *name, struct err *e)
{
    for (;;) {
        autofd int fd = tree_open_dir(parent_fd, name);
        if (fd < 0 && errno != ENOENT)
            return err_sys(e, "%.80s in the store", name);
        if (fd < 0)
            return err_set(e, ERR_NOT_FOUND, "%.80s is not in the store", name);
        lock_take(fd, LOCK_SH); /* a remover has its own only while it renames */
        if (!lock_is_still(parent_fd, name, fd))
            continue;
        note_use(fd);
        return take_fd(&fd);
    }
}

int entry_remove(int parent_fd, const char *name)
{
    autofd int fd = tree_open_dir(parent_fd, name);
    char       old[NAME_MAX + 1];

    if (fd < 0 || lock_take(fd, LOCK_EX | LOCK_NB) < 0 || !lock_is_still(parent_fd, name, fd) ||
        set_aside(parent_fd, name, fd, old) < 0)
        return 0;
    lock_take(fd, LOCK_UN); /* who waits to hold it must not wait for the removal */
    remove_part(parent_fd, old, fd);
    return 1;
}
