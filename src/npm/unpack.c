#include "npm/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

const struct unpack_limits unpack_limits = {.members = 200000, .bytes = 2ll << 30};

enum { DEPTH_MAX = 64 }; /* removing a tree holds a descriptor a level */

struct unpack {
    struct archive             *archive;
    int                         dir_fd;
    const struct unpack_limits *limits;
    int64_t                     members, bytes;
};

static int open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)flags | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };

    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
}

/* The member's name as it may stand in a sentence on a terminal. */
static int refuse(struct archive_entry *entry, enum err_kind kind, const char *why, struct err *e)
{
    const char *name = archive_entry_pathname(entry);
    char        shown[101];
    size_t      n = 0;

    for (; name && name[n] && n < sizeof shown - 1; n++)
        shown[n] = (char)(name[n] >= ' ' && name[n] <= '~' ? name[n] : '?');
    shown[n] = '\0';
    return err_set(e, kind, "refused to unpack \"%s\": %s", shown, why);
}

static int refuse_sys(struct archive_entry *entry, struct err *e)
{
    int saved = errno;

    refuse(entry, ERR_INTERNAL, strerror(saved), e);
    if (e)
        e->sys = saved;
    return -1;
}

/* Drops the first part, and parts that say nothing ("", "."); "" is the directory itself. */
static int clean_name(struct archive_entry *entry, char ret[PATH_MAX], struct err *e)
{
    const char *name = archive_entry_pathname(entry);
    size_t      used = 0, depth = 0;

    *ret = '\0';
    if (!name || strlen(name) >= PATH_MAX)
        return refuse(entry, ERR_INVALID, "its name cannot be used", e);
    if (*name == '/')
        return refuse(entry, ERR_INVALID, "its name is absolute", e);
    for (const char *c = name; *c; c++)
        if (iscntrl((unsigned char)*c)) /* a line of the entry's manifest is a name */
            return refuse(entry, ERR_INVALID, "its name cannot be used", e);
    for (size_t n; *name; name += n + (name[n] == '/')) {
        n = strcspn(name, "/");
        if (n == 2 && memcmp(name, "..", 2) == 0)
            return refuse(entry, ERR_INVALID, "its name leads out of the package", e);
        if (n == 0 || (n == 1 && *name == '.') || depth++ == 0)
            continue;
        if (depth > DEPTH_MAX)
            return refuse(entry, ERR_LIMIT, "it lies too deep", e);
        if (used > 0)
            ret[used++] = '/';
        memcpy(ret + used, name, n);
        used += n;
    }
    ret[used] = '\0';
    return 0;
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

static int write_file(struct unpack *u, struct archive_entry *entry, char *path, struct err *e)
{
    bool       executable = archive_entry_perm(entry) & 0111;
    autofd int fd = open_file(u->dir_fd, path, executable ? 0755 : 0644);
    char       block[1 << 16];
    ssize_t    n;

    if (fd < 0)
        return refuse_sys(entry, e);
    while ((n = archive_read_data(u->archive, block, sizeof block)) > 0) {
        u->bytes += n;
        if (u->bytes > u->limits->bytes)
            return refuse(entry, ERR_LIMIT, "the package is too large", e);
        if (fd_write_all(fd, block, (size_t)n) < 0)
            return refuse_sys(entry, e);
    }
    return n < 0 ? refuse(entry, ERR_INVALID, "the archive is damaged", e) : 0;
}

static int make_dir(struct unpack *u, struct archive_entry *entry, const char *path, struct err *e)
{
    autofd int fd = ensure_dir(u->dir_fd, path);

    return fd < 0 ? refuse_sys(entry, e) : 0;
}

static int unpack_member(struct unpack *u, struct archive_entry *entry, struct err *e)
{
    char   path[PATH_MAX];
    mode_t type = archive_entry_filetype(entry);

    if (++u->members > u->limits->members)
        return refuse(entry, ERR_LIMIT, "the package has too many files", e);
    if (archive_entry_hardlink(entry) || (type != AE_IFREG && type != AE_IFDIR))
        return refuse(entry, ERR_INVALID, "it is neither a file nor a directory", e);
    TRY(clean_name(entry, path, e));
    if (type == AE_IFDIR)
        return make_dir(u, entry, path, e);
    if (!*path)
        return refuse(entry, ERR_INVALID, "it lies outside of the package's directory", e);
    return write_file(u, entry, path, e);
}

static int unpack_members(struct unpack *u, struct err *e)
{
    struct archive_entry *entry;
    int                   status;

    while ((status = archive_read_next_header(u->archive, &entry)) != ARCHIVE_EOF) {
        if (status < ARCHIVE_WARN)
            return err_set(e, ERR_INVALID, "the archive is damaged, or no gzip-compressed tar");
        TRY(unpack_member(u, entry, e));
    }
    return 0;
}

int unpack_tgz(int tgz_fd, int dir_fd, const struct unpack_limits *limits, struct err *e)
{
    struct unpack u = {.archive = archive_read_new(), .dir_fd = dir_fd, .limits = limits};
    int           done;

    if (!u.archive)
        abort();
    archive_read_support_filter_gzip(u.archive);
    archive_read_support_format_tar(u.archive);
    if (archive_read_open_fd(u.archive, tgz_fd, 1 << 16) != ARCHIVE_OK)
        done = err_set(e, ERR_INVALID, "the archive is damaged, or no gzip-compressed tar");
    else
        done = unpack_members(&u, e);
    archive_read_free(u.archive);
    return done;
}
