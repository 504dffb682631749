#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}

void fd_reset(int *fd)
{
    static const struct linger at_once = {.l_onoff = 1};

    if (*fd >= 0)
        setsockopt(*fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    fd_close(fd);
}

int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

int fd_write_all(int fd, const void *data, size_t size)
{
    const char *p = data;

    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        p += n;
        size -= (size_t)n;
    }
    return 0;
}

int fd_set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0)
        return -1;
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(fd, F_SETFL, flags);
}

int fd_read_text(int fd, size_t max, char **ret_text, size_t *ret_size, struct err *e)
{
    size_t         used = 0, room = 4096;
    autofree char *text = malloc(room);

    if (!text)
        abort();
    for (;;) {
        if (used + 1 >= room) {
            room *= 2;
            char *larger = realloc(text, room);
            if (!larger)
                abort();
            text = larger;
        }
        ssize_t n = read(fd, text + used, room - used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "read");
        if (n == 0)
            break;
        used += (size_t)n;
        if (used > max)
            return err_set(e, ERR_LIMIT, "longer than %zu bytes", max);
    }
    text[used] = '\0';
    *ret_text = text;
    if (ret_size)
        *ret_size = used;
    text = NULL;
    return 0;
}

int file_read_text(int dir_fd, const char *path, size_t max, char **ret_text, struct err *e)
{
    autofd int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "%s", path);
    if (fd_read_text(fd, max, ret_text, NULL, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}

int file_write_text(int dir_fd, const char *path, const char *text, struct err *e)
{
    autofd int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
        return err_sys(e, "%s", path);
    return 0;
}

int file_make_executable(int dir_fd, const char *path)
{
    autofd int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    return fd < 0 ? -1 : fchmod(fd, 0755);
}
