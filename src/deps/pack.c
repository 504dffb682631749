#include "deps/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"

enum { HEAD = 17, FLUSH_AT = 1 << 16, BUFFER_MAX = 1 << 18, LIST_MAX = 1 << 24 };

struct packing {
    int        to_fd;
    struct buf out;
};

static int flush(struct packing *p, struct err *e)
{
    if (fd_write_all(p->to_fd, p->out.data, p->out.size) < 0)
        return err_sys(e, "send a tree");
    p->out.size = 0;
    return 0;
}

static int put(struct packing *p, const void *bytes, size_t size, struct err *e)
{
    if (buf_add(&p->out, bytes, size) < 0)
        return err_set(e, ERR_LIMIT, "a name is too long");
    return p->out.size < FLUSH_AT ? 0 : flush(p, e);
}

static int put_head(struct packing *p, char kind, mode_t mode, const char *name, uint64_t size,
                    struct err *e)
{
    uint8_t  head[HEAD] = {(uint8_t)kind};
    uint32_t name_size = (uint32_t)strlen(name), bits = mode & 0777;

    for (int i = 0; i < 4; i++) {
        head[1 + i] = (uint8_t)(bits >> (8 * i));
        head[5 + i] = (uint8_t)(name_size >> (8 * i));
    }
    for (int i = 0; i < 8; i++)
        head[9 + i] = (uint8_t)(size >> (8 * i));
    TRY(put(p, head, sizeof head, e));
    return put(p, name, name_size, e);
}

static int pack_file(struct packing *p, int dir_fd, const char *entry, const char *name,
                     struct err *e)
{
    autofd int  fd = openat(dir_fd, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    uint8_t     bytes[FLUSH_AT];

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "read %.120s", name);
    if (!S_ISREG(st.st_mode)) /* any more */
        return err_set(e, ERR_UNAVAILABLE, "%.120s is no file any more", name);
    TRY(put_head(p, 'f', st.st_mode, name, (uint64_t)st.st_size, e));
    for (int64_t left = st.st_size; left > 0;) {
        ssize_t n = read(fd, bytes, left < (int64_t)sizeof bytes ? (size_t)left : sizeof bytes);
        if (n <= 0)
            return err_set(e, ERR_INTERNAL, "%.120s shrinks while it is read", name);
        TRY(put(p, bytes, (size_t)n, e));
        left -= n;
    }
    return 0;
}

static int pack_link(struct packing *p, int dir_fd, const char *entry, const char *name,
                     struct err *e)
{
    char    text[PATH_MAX];
    ssize_t n = readlinkat(dir_fd, entry, text, sizeof text);

    if (n < 0)
        return err_sys(e, "read %.120s", name);
    TRY(put_head(p, 'l', 0, name, (uint64_t)n, e));
    return put(p, text, (size_t)n, e);
}

static int pack_dir(struct packing *p, int dir_fd, const char *name, int depth, struct err *e)
{
    DIR                 *dir = tree_list(dir_fd);
    const struct dirent *d;
    int                  r = put_head(p, 'd', 0755, name, 0, e);

    if (!dir)
        return err_sys(e, "read %.120s", name);
    while (r == 0 && (d = tree_next(dir))) {
        autofree char *inner = str_format("%s/%s", name, d->d_name);
        autofd int     inner_fd = -1;
        struct stat    st;
        if (fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            r = err_sys(e, "read %.120s", inner);
        else if (S_ISREG(st.st_mode))
            r = pack_file(p, dir_fd, d->d_name, inner, e);
        else if (S_ISLNK(st.st_mode))
            r = pack_link(p, dir_fd, d->d_name, inner, e);
        else if (depth == TREE_DEPTH_MAX || (inner_fd = tree_open_dir(dir_fd, d->d_name)) < 0)
            r = err_set(e, ERR_LIMIT, "%.120s is too deep, or no directory", inner);
        else
            r = pack_dir(p, inner_fd, inner, depth + 1, e);
    }
    closedir(dir);
    return r;
}

/* ---- some of it ---- */

/* Any other error is the disk's, or ours, and does not say that there is no such file. */
static bool is_absence(int sys)
{
    return sys == ENOENT || sys == ENOTDIR || sys == ELOOP || sys == EACCES;
}

static int pack_one(struct packing *p, int dir_fd, const char *path, struct err *e)
{
    const char    *entry;
    autofree char *name = str_format("/%s", path);
    autofd int     parent = tree_open_parent(dir_fd, path, &entry);
    struct stat    st;

    if (parent < 0 || fstatat(parent, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return is_absence(errno) ? put_head(p, 'x', 0, name, 0, e)
                                 : err_sys(e, "read %.120s", path);
    if (S_ISLNK(st.st_mode))
        return pack_link(p, parent, entry, name, e);
    if (!S_ISREG(st.st_mode) || faccessat(parent, entry, R_OK, AT_EACCESS) < 0)
        return put_head(p, 'x', 0, name, 0, e);
    return pack_file(p, parent, entry, name, e);
}

static int pack_listed(struct packing *p, int dir_fd, int list_fd, struct err *e)
{
    autofree char *list = NULL;
    size_t         size;

    TRY(fd_read_text(list_fd, LIST_MAX, &list, &size, e));
    for (size_t at = 0; at < size; at += strlen(list + at) + 1)
        TRY(pack_one(p, dir_fd, list + at, e));
    return 0;
}

/* ---- the stream ---- */

static int pack(const char *dir, int list_fd, int to_fd, struct err *e)
{
    autofd int     fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct packing p = {.to_fd = to_fd};
    int            r;

    if (fd < 0)
        return err_sys(e, "open %.150s", dir);
    buf_init(&p.out, BUFFER_MAX);
    r = list_fd < 0 ? pack_dir(&p, fd, "", 0, e) : pack_listed(&p, fd, list_fd, e);
    if (r == 0)
        r = put_head(&p, '.', 0, "", 0, e);
    if (r == 0)
        r = flush(&p, e);
    buf_done(&p.out);
    return r;
}

int pack_tree(const char *dir, int to_fd, struct err *e)
{
    return pack(dir, -1, to_fd, e);
}

int pack_some(const char *dir, int list_fd, int to_fd, struct err *e)
{
    return pack(dir, list_fd, to_fd, e);
}
