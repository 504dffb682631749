#include "npm/tarball.h"

#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct tarball_limits tarball_limits = {.members = 200000, .bytes = 2ll << 30};

enum { DEPTH_MAX = 64 }; /* removing a tree holds a descriptor a level */

struct tarball {
    struct archive              *archive;
    struct archive_entry        *entry; /* of the member that is looked at */
    const struct tarball_limits *limits;
    int64_t                      members, bytes;
    int64_t                      left; /* of the member, as it claims */
};

/* The member's name as it may stand in a sentence on a terminal. */
int tarball_refuse(const struct tarball *t, enum err_kind kind, const char *why, struct err *e)
{
    const char *name = archive_entry_pathname(t->entry);
    char        shown[101];
    size_t      n = 0;

    for (; name && name[n] && n < sizeof shown - 1; n++)
        shown[n] = (char)(name[n] >= ' ' && name[n] <= '~' ? name[n] : '?');
    shown[n] = '\0';
    return err_set(e, kind, "refused to unpack \"%s\": %s", shown, why);
}

int tarball_refuse_sys(const struct tarball *t, struct err *e)
{
    int saved = errno;

    tarball_refuse(t, ERR_INTERNAL, strerror(saved), e);
    if (e)
        e->sys = saved;
    return -1;
}

/* Drops the first part, and parts that say nothing ("", "."); "" is the directory itself. */
static int clean_name(const struct tarball *t, char ret[PATH_MAX], struct err *e)
{
    const char *name = archive_entry_pathname(t->entry);
    size_t      used = 0, depth = 0;

    *ret = '\0';
    if (!name || strlen(name) >= PATH_MAX)
        return tarball_refuse(t, ERR_INVALID, "its name cannot be used", e);
    if (*name == '/')
        return tarball_refuse(t, ERR_INVALID, "its name is absolute", e);
    for (const char *c = name; *c; c++)
        if (iscntrl((unsigned char)*c)) /* a line of the entry's manifest is a name */
            return tarball_refuse(t, ERR_INVALID, "its name cannot be used", e);
    for (size_t n; *name; name += n + (name[n] == '/')) {
        n = strcspn(name, "/");
        if (n == 2 && memcmp(name, "..", 2) == 0)
            return tarball_refuse(t, ERR_INVALID, "its name leads out of the package", e);
        if (n == 0 || (n == 1 && *name == '.') || depth++ == 0)
            continue;
        if (depth > DEPTH_MAX)
            return tarball_refuse(t, ERR_LIMIT, "it lies too deep", e);
        if (used > 0)
            ret[used++] = '/';
        memcpy(ret + used, name, n);
        used += n;
    }
    ret[used] = '\0';
    return 0;
}

ssize_t tarball_read(struct tarball *t, void *data, size_t size, struct err *e)
{
    ssize_t n = archive_read_data(t->archive, data, size);

    if (n < 0 || n > t->left)
        return tarball_refuse(t, ERR_INVALID, "the archive is damaged", e);
    t->left -= n;
    return n;
}

static int count(struct tarball *t, int64_t size, struct err *e)
{
    if (++t->members > t->limits->members)
        return tarball_refuse(t, ERR_LIMIT, "the package has too many files", e);
    if (size < 0)
        return tarball_refuse(t, ERR_INVALID, "the archive is damaged", e);
    if (size > t->limits->bytes - t->bytes)
        return tarball_refuse(t, ERR_LIMIT, "the package is too large", e);
    t->bytes += size;
    t->left = size;
    return 0;
}

static int take_member(struct tarball *t, tarball_take *take, void *owner, struct err *e)
{
    char                  path[PATH_MAX];
    mode_t                type = archive_entry_filetype(t->entry);
    struct tarball_member m = {
        .path = path,
        .size = archive_entry_size(t->entry),
        .is_dir = type == AE_IFDIR,
        .is_executable = archive_entry_perm(t->entry) & 0111,
    };

    TRY(count(t, m.size, e));
    if (archive_entry_hardlink(t->entry) || (type != AE_IFREG && type != AE_IFDIR))
        return tarball_refuse(t, ERR_INVALID, "it is neither a file nor a directory", e);
    TRY(clean_name(t, path, e));
    if (!m.is_dir && !*path)
        return tarball_refuse(t, ERR_INVALID, "it lies outside of the package's directory", e);
    return take(owner, t, &m, e);
}

static int take_members(struct tarball *t, tarball_take *take, void *owner, struct err *e)
{
    int status;

    while ((status = archive_read_next_header(t->archive, &t->entry)) != ARCHIVE_EOF) {
        if (status < ARCHIVE_WARN)
            return err_set(e, ERR_INVALID, "the archive is damaged, or no gzip-compressed tar");
        TRY(take_member(t, take, owner, e));
    }
    return 0;
}

int tarball_each(int tgz_fd, const struct tarball_limits *limits, tarball_take *take, void *owner,
                 struct err *e)
{
    struct tarball t = {.archive = archive_read_new(), .limits = limits};
    int            done;

    if (!t.archive)
        abort();
    archive_read_support_filter_gzip(t.archive);
    archive_read_support_format_tar(t.archive);
    if (archive_read_open_fd(t.archive, tgz_fd, 1 << 16) != ARCHIVE_OK)
        done = err_set(e, ERR_INVALID, "the archive is damaged, or no gzip-compressed tar");
    else
        done = take_members(&t, take, owner, e);
    archive_read_free(t.archive);
    return done;
}
