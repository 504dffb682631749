#include "init/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/fd.h"

enum { ENTER = O_RDONLY | O_DIRECTORY | O_NONBLOCK };

/* Moves *at behind the next component. Its size, 0 at the end, -1: no name. */
static int next_name(const char **at, char ret_name[NAME_MAX + 1])
{
    size_t n;

    *at += strspn(*at, "/");
    n = strcspn(*at, "/");
    if (n > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(ret_name, *at, n);
    ret_name[n] = '\0';
    *at += n;
    if (strcmp(ret_name, "..") == 0) {
        errno = EXDEV; /* what openat2 says */
        return -1;
    }
    return (int)n;
}

static int walk(int root_fd, const char *path, int flags)
{
    autofd int  dir = openat(root_fd, ".", ENTER | O_CLOEXEC);
    const char *at = path;
    char        name[NAME_MAX + 1];
    int         n;

    while (dir >= 0 && (n = next_name(&at, name)) != 0) {
        bool is_last = at[strspn(at, "/")] == '\0';
        int  how = (is_last ? flags : ENTER) | O_NOFOLLOW | O_CLOEXEC;
        int  fd = n < 0 ? -1 : openat(dir, name, how);

        fd_close(&dir);
        dir = fd;
    }
    return take_fd(&dir);
}

int beneath_open(int root_fd, const char *path, int flags, struct err *e)
{
    int fd;

    if (*path == '/')
        return err_set(e, ERR_INVALID, "open %.120s: it is not below the workspace", path);
    fd = walk(root_fd, path, flags);
    if (fd < 0 && errno == ELOOP) {
        err_set(e, ERR_INVALID, "open %.120s: links are not followed", path);
        e->sys = ELOOP;
        return -1;
    }
    return fd < 0 ? err_sys(e, "open %.120s", path) : fd;
}
