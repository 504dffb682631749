#include "store/seal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { FRONT_MAX = 2048 };

static const char magic[] = "jerboa-seal 1\n";

/* The line of a file as it is now. */
static int describe(int dir_fd, const char *file, char *ret, size_t size)
{
    struct stat st;

    if (fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    snprintf(ret, size, "%" PRId64 " %" PRId64 "%09ld %s\n", (int64_t)st.st_size,
             (int64_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, file);
    return 0;
}

int seal_front(int dir_fd, const char *const *files, struct buf *ret, struct err *e)
{
    char line[FRONT_MAX];

    if (buf_printf(ret, "%s", magic) < 0)
        return err_set(e, ERR_LIMIT, "too long a seal");
    for (; *files; files++)
        if (describe(dir_fd, *files, line, sizeof line) < 0)
            return err_sys(e, "%s", *files);
        else if (buf_printf(ret, "%s", line) < 0)
            return err_set(e, ERR_LIMIT, "too long a seal");
    if (buf_printf(ret, "\n") < 0 || ret->size > FRONT_MAX)
        return err_set(e, ERR_LIMIT, "too long a seal");
    return 0;
}

/* Tar and images keep whole seconds only: what was copied so is as it was. */
static bool is_time(const struct timespec *now, int64_t sealed_ns)
{
    const int64_t second = 1000000000;

    return now->tv_sec == sealed_ns / second &&
           (now->tv_nsec == sealed_ns % second || now->tv_nsec == 0);
}

static int check_line(int dir_fd, const char *line, size_t size, struct err *e)
{
    char        name[FRONT_MAX];
    int64_t     bytes = -1, ns = -1;
    int         skip = 0;
    struct stat st;

    snprintf(name, sizeof name, "%.*s", (int)size - 1, line);
    sscanf(name, "%" SCNd64 " %" SCNd64 " %n", &bytes, &ns, &skip);
    if (skip == 0 || !name[skip])
        return err_set(e, ERR_INVALID, "its seal cannot be read");
    if (fstatat(dir_fd, name + skip, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(e, ERR_INVALID, "%.80s is missing", name + skip);
    if (st.st_size != bytes || !is_time(&st.st_mtim, ns))
        return err_set(e, ERR_INVALID, "%.80s has changed", name + skip);
    if ((st.st_mode & 0555) != 0555) /* sandboxes run them as another user */
        return err_set(e, ERR_INVALID, "%.80s cannot be executed by all", name + skip);
    return 0;
}

int seal_check(int dir_fd, struct err *e)
{
    autofd int  fd = openat(dir_fd, SEAL_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char        front[FRONT_MAX + 1];
    const char *line = front + sizeof magic - 1, *end;
    ssize_t     n = fd < 0 ? -1 : read(fd, front, FRONT_MAX);

    if (n < 0) {
        struct err why = {0};
        err_sys(&why, "its seal");
        if (!err_is_shortage(&why))
            err_set(&why, ERR_INVALID, "it has no seal");
        if (e)
            *e = why;
        return -1;
    }
    front[n] = '\0';
    if (!str_starts(front, magic))
        return err_set(e, ERR_INVALID, "its seal cannot be read");
    while (*line != '\n') {
        end = strchr(line, '\n');
        if (!end)
            return err_set(e, ERR_INVALID, "its seal cannot be read");
        TRY(check_line(dir_fd, line, (size_t)(end + 1 - line), e));
        line = end + 1;
    }
    return 0;
}

int seal_check_entry(int dir_fd, const void *arg, struct err *e)
{
    (void)arg;
    return seal_check(dir_fd, e);
}
