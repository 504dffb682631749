/* Reading below the directory. A path is opened without rights first, so that nothing but a regular
 * file is ever really opened: a device would notice, a FIFO would wait. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/files_private.h"

static int refuse(int sys, const char *path, struct err *e)
{
    static const struct {
        int           sys;
        enum err_kind kind;
        const char   *sentence;
    } rows[] = {
        {ENOENT, ERR_NOT_FOUND, "there is no file \"%.120s\""},
        {ENOTDIR, ERR_NOT_FOUND, "there is no file \"%.120s\""},
        {EXDEV, ERR_INVALID, "\"%.120s\" leads out of the directory of files"},
        {ELOOP, ERR_INVALID, "\"%.120s\" is a link that leads nowhere"},
        {ENAMETOOLONG, ERR_INVALID, "\"%.120s…\" is too long a path"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].sys == sys) {
            err_set(e, rows[i].kind, rows[i].sentence, path);
            if (e)
                e->sys = sys;
            return -1;
        }
    errno = sys;
    return err_sys(e, "\"%.120s\"", path);
}

int files_open_regular(const struct files *f, const char *path, uint64_t *ret_size, struct err *e)
{
    char        link[32];
    autofd int  place = files_tree_open(f, path, O_PATH, 0);
    struct stat st;
    int         fd;

    if (place < 0 || fstat(place, &st) < 0)
        return refuse(errno, path, e);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "\"%.120s\" is not a regular file", path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", place);
    fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return refuse(errno, path, e);
    if (ret_size)
        *ret_size = (uint64_t)st.st_size;
    return fd;
}

int files_read(struct files *f, const char *path, size_t max, struct buf *ret, uint64_t *ret_whole,
               struct err *e)
{
    uint64_t   size = 0;
    autofd int fd = files_open_regular(f, path, &size, e);

    if (fd < 0)
        return -1;
    if (size > max)
        size = max; /* what is written meanwhile does not count */
    for (size_t left = (size_t)size; left > 0;) {
        uint8_t *to = buf_reserve(ret, left);
        ssize_t  n = to ? read(fd, to, left) : -1;

        if (!to)
            return err_set(e, ERR_LIMIT, "\"%.120s\" is too long", path);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return refuse(errno, path, e);
        if (n == 0)
            break;
        ret->size += (size_t)n;
        left -= (size_t)n;
    }
    struct stat st;
    *ret_whole = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : size;
    return 0;
}

static struct files_entry entry_of(const char *path, const struct state *s)
{
    return (struct files_entry){path, s->kind, s->size, s->mtime_ns};
}

static bool is_listed(const struct state *s)
{
    return s->kind != FILES_DIRECTORY;
}

void files_list(const struct files *f, const char                                *after,
                bool (*each)(void *owner, const struct files_entry *entry), void *owner)
{
    void *value;

    while ((after = paths_next(&f->known, after, PATHS_AFTER, &value))) {
        struct files_entry entry = entry_of(after, value);

        if (is_listed(value) && !each(owner, &entry))
            return;
    }
}

bool files_find(const struct files *f, const char *path, struct files_entry *ret)
{
    const struct state *known = paths_find(&f->known, path);

    if (!known || !is_listed(known))
        return false;
    *ret = entry_of(path, known);
    return true;
}
