/* Whoever filled it may be hostile: its directories can be deeper than we may have descriptors,
 * and without a right to look into them. Removal moves what lies too deep up to the top, where the
 * next round finds it; sizes are only told of trees that are as deep as packages are. */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

int tree_open_dir(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_plain(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int enter_plainly(void *owner, int parent_fd, const char *name)
{
    (void)owner;
    return tree_open_dir(parent_fd, name);
}

int tree_walk_to_parent(int dir_fd, const char                                           *path,
                        int (*enter)(void *owner, int parent_fd, const char *name), void *owner,
                        const char **ret_name)
{
    autofree char *names = str_dup(path);
    char          *name = names, *slash;
    autofd int     fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);

    while (fd >= 0 && (slash = strchr(name, '/'))) {
        *slash = '\0';
        autofd int inner = is_plain(name) ? enter(owner, fd, name) : (errno = EINVAL, -1);
        fd_close(&fd);
        fd = take_fd(&inner);
        name = slash + 1;
    }
    if (fd >= 0 && !is_plain(name)) {
        fd_close(&fd);
        errno = EINVAL;
    }
    *ret_name = path + (name - names);
    return take_fd(&fd);
}

int tree_open_parent(int dir_fd, const char *path, const char **ret_name)
{
    return tree_walk_to_parent(dir_fd, path, enter_plainly, NULL, ret_name);
}

DIR *tree_list(int dir_fd)
{
    autofd int fd = tree_open_dir(dir_fd, "."); /* with a position of its own */
    DIR       *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir)
        take_fd(&fd);
    return dir;
}

struct dirent *tree_next(DIR *dir)
{
    struct dirent *d;

    do
        d = readdir(dir);
    while (d && (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0));
    return d;
}

static int add_size(int dir_fd, int depth, int64_t *bytes, struct err *e);

static int add_one(int dir_fd, const char *name, int depth, int64_t *bytes, struct err *e)
{
    struct stat st;
    autofd int  below = -1;

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(e, "%.80s", name); /* somebody removes */
    *bytes += (int64_t)st.st_blocks * 512;
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (depth == TREE_DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "directories are nested more than %d deep", TREE_DEPTH_MAX);
    below = tree_open_dir(dir_fd, name);
    if (below < 0)
        return errno == ENOENT ? 0 : err_sys(e, "%.80s", name);
    return add_size(below, depth + 1, bytes, e);
}

static int add_size(int dir_fd, int depth, int64_t *bytes, struct err *e)
{
    DIR           *dir = tree_list(dir_fd);
    struct dirent *d;
    int            done = 0;

    if (!dir)
        return err_sys(e, "list a directory");
    while ((d = tree_next(dir)))
        done |= add_one(dir_fd, d->d_name, depth, bytes, done ? NULL : e); /* the first tells */
    closedir(dir);
    return done;
}

int tree_size(int dir_fd, int64_t *ret_bytes, struct err *e)
{
    *ret_bytes = 0;
    return add_size(dir_fd, 0, ret_bytes, e);
}

struct removal {
    int      top_fd;
    unsigned moved; /* directories that were brought to the top, ever */
};

static void remove_below(struct removal *r, int dir_fd, int depth);

static int open_anyway(int parent_fd, const char *name)
{
    int fd = tree_open_dir(parent_fd, name);

    if (fd < 0 && errno == EACCES && fchmodat(parent_fd, name, 0700, AT_SYMLINK_NOFOLLOW) == 0)
        fd = tree_open_dir(parent_fd, name);
    return fd;
}

/* Names that are taken: the next number. */
static void move_up(struct removal *r, int dir_fd, const char *name)
{
    char up[32];

    do
        snprintf(up, sizeof up, ".deep-%u", r->moved++);
    while (renameat2(dir_fd, name, r->top_fd, up, RENAME_NOREPLACE) < 0 && errno == EEXIST);
}

static void remove_one(struct removal *r, int dir_fd, const char *name, int depth)
{
    autofd int below = -1;

    if (unlinkat(dir_fd, name, 0) == 0 || errno != EISDIR ||
        unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return;
    below = open_anyway(dir_fd, name);
    if (below < 0)
        return;
    if (depth == TREE_DEPTH_MAX) {
        fchmod(below, 0700); /* a directory that moves gets another "..": a write into it */
        move_up(r, dir_fd, name);
        return;
    }
    remove_below(r, below, depth + 1);
    unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static void remove_below(struct removal *r, int dir_fd, int depth)
{
    DIR           *dir;
    struct dirent *d;

    if (depth > 0) /* the top one stays as its owner made it */
        fchmod(dir_fd, 0700);
    dir = tree_list(dir_fd);
    while (dir && (d = tree_next(dir)))
        remove_one(r, dir_fd, d->d_name, depth);
    if (dir)
        closedir(dir);
}

void tree_remove(int dir_fd)
{
    struct removal r = {.top_fd = dir_fd};
    unsigned       before;

    do {
        before = r.moved;
        remove_below(&r, dir_fd, 0);
    } while (r.moved != before); /* what came up behind the reader's back */
}
