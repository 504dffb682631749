#include "npm/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

static int open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)flags | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };

    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

/* Makes what is missing of `path`, part by part, and opens it. */
static int ensure_dir(int root_fd, const char *path)
{
    autofd int dir = open_beneath(root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0);
    char       part[NAME_MAX + 1];

    if (dir >= 0 || errno != ENOENT)
        return take_fd(&dir);
    dir = open_beneath(root_fd, ".", O_RDONLY | O_DIRECTORY, 0);
    for (size_t n; dir >= 0 && *path; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (n > NAME_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = '\0';
        if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
            return -1;
        int next = open_beneath(dir, part, O_RDONLY | O_DIRECTORY, 0);
        fd_close(&dir);
        dir = next;
    }
    return take_fd(&dir);
}

static int open_file(int root_fd, char *path, mode_t mode)
{
    char      *slash = strrchr(path, '/');
    autofd int dir = -1;

    if (slash)
        *slash = '\0';
    dir = ensure_dir(root_fd, slash ? path : "");
    if (slash)
        *slash = '/';
    if (dir < 0)
        return -1;
    return open_beneath(dir, slash ? slash + 1 : path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

static int write_file(int dir_fd, struct tarball *t, const struct tarball_member *m, struct err *e)
{
    autofd int fd = open_file(dir_fd, m->path, m->is_executable ? 0755 : 0644);
    char       block[1 << 16];
    ssize_t    n;

    if (fd < 0)
        return tarball_refuse_sys(t, e);
    while ((n = tarball_read(t, block, sizeof block, e)) > 0)
        if (fd_write_all(fd, block, (size_t)n) < 0)
            return tarball_refuse_sys(t, e);
    return (int)n;
}

static int make_dir(int dir_fd, struct tarball *t, const struct tarball_member *m, struct err *e)
{
    autofd int fd = ensure_dir(dir_fd, m->path);

    return fd < 0 ? tarball_refuse_sys(t, e) : 0;
}

static int unpack_member(void *owner, struct tarball *t, const struct tarball_member *m,
                         struct err *e)
{
    const int *dir_fd = owner;

    return m->is_dir ? make_dir(*dir_fd, t, m, e) : write_file(*dir_fd, t, m, e);
}

int unpack_tgz(int tgz_fd, int dir_fd, const struct tarball_limits *limits, struct err *e)
{
    return tarball_each(tgz_fd, limits, unpack_member, &dir_fd, e);
}
