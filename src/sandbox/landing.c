/* Theory of operation. A path is walked a name at a time, by descriptors, and no name may be a
 * link: so there is no way out, whoever changes the directory meanwhile. The file has no name while
 * it is written (where the filesystem can do that): nothing is left of one that is given up, or of
 * a server that is killed. */
#include "sandbox/landing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"
#include "base/str.h"
#include "base/tree.h"

const struct landing landing_none = {.parent_fd = -1, .fd = -1};

static void give_to_owner(int fd, const struct stat *owner)
{
    if (geteuid() == 0 && fchown(fd, owner->st_uid, owner->st_gid) < 0)
        return; /* a filesystem without owners: it belongs to whom it belongs */
}

static int enter_or_make(void *owner, int parent_fd, const char *name)
{
    autofd int inner = tree_open_dir(parent_fd, name);

    if (inner < 0 && errno == ENOENT && mkdirat(parent_fd, name, 0755) == 0) {
        inner = tree_open_dir(parent_fd, name);
        if (inner >= 0)
            give_to_owner(inner, owner);
    }
    return take_fd(&inner);
}

static int make_parent(int dir_fd, const char *path, const char **ret_name)
{
    struct stat owner;

    if (fstat(dir_fd, &owner) < 0)
        return -1;
    return tree_walk_to_parent(dir_fd, path, enter_or_make, &owner, ret_name);
}

static int open_nameless(struct landing *l)
{
    char id[33];

    l->fd = openat(l->parent_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    random_id(id);
    snprintf(l->beside, sizeof l->beside, ".jerboa-%s", id);
    if (l->fd >= 0)
        return 0;
    l->fd =
        openat(l->parent_fd, l->beside, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
    return l->fd < 0 ? -1 : 0;
}

int landing_open(struct landing *l, int dir_fd, const char *path, struct err *e)
{
    const char *name;

    *l = landing_none;
    l->parent_fd = make_parent(dir_fd, path, &name);
    if (l->parent_fd >= 0 && str_copy(l->name, sizeof l->name, name) < 0)
        errno = ENAMETOOLONG;
    else if (l->parent_fd >= 0 && open_nameless(l) == 0)
        return 0;
    err_sys(e, "\"%.120s\"", path);
    landing_drop(l);
    return -1;
}

int landing_write(struct landing *l, const void *bytes, size_t size, struct err *e)
{
    return fd_write_all(l->fd, bytes, size) < 0 ? err_sys(e, "\"%.120s\"", l->name) : 0;
}

/* A link that cannot be made: it has a name already. */
static void give_name(struct landing *l)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", l->fd);
    if (linkat(AT_FDCWD, path, l->parent_fd, l->beside, AT_SYMLINK_FOLLOW) < 0)
        return;
}

int landing_commit(struct landing *l, int dir_fd, struct stat *ret_st, struct err *e)
{
    struct stat owner, old;
    mode_t      mode = 0644;

    if (fstatat(l->parent_fd, l->name, &old, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(old.st_mode))
        mode = old.st_mode & 0777;
    if (fstat(dir_fd, &owner) == 0)
        give_to_owner(l->fd, &owner);
    give_name(l);
    if (fchmod(l->fd, mode) < 0 || renameat(l->parent_fd, l->beside, l->parent_fd, l->name) < 0 ||
        fstat(l->fd, ret_st) < 0) {
        err_sys(e, "\"%.120s\"", l->name);
        landing_drop(l);
        return -1;
    }
    l->beside[0] = '\0';
    landing_drop(l);
    return 0;
}

void landing_drop(struct landing *l)
{
    if (l->fd >= 0 && *l->beside)
        unlinkat(l->parent_fd, l->beside, 0);
    fd_close(&l->fd);
    fd_close(&l->parent_fd);
}

int landing_look(int dir_fd, const char *path, struct stat *ret)
{
    const char *name;
    autofd int  parent = tree_open_parent(dir_fd, path, &name);

    return parent < 0 ? -1 : fstatat(parent, name, ret, AT_SYMLINK_NOFOLLOW);
}

int landing_remove(int dir_fd, const char *path, enum landing_kind kind)
{
    const char *name;
    autofd int  parent = tree_open_parent(dir_fd, path, &name);

    return parent < 0 ? -1 : unlinkat(parent, name, kind == LANDING_DIRECTORY ? AT_REMOVEDIR : 0);
}
