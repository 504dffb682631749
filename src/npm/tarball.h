/* tarball - the members of an npm package, one by one, each checked before anybody sees it.
 *
 * The archive is hostile: only gzip and tar are understood; members are regular files and
 * directories, anything else is refused by name, and so are absolute names and "..". The first part
 * of a name ("package/") is dropped, as npm does. A member counts with the size that it claims,
 * read or not, before a byte of it is unpacked: gigabytes of zeros cost nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct tarball_limits {
    int64_t members;
    int64_t bytes;
};

extern const struct tarball_limits tarball_limits; /* what packages in the wild stay well below */

struct tarball_member {
    char   *path; /* clean, relative; "" is the package's own directory; may be cut and mended */
    int64_t size;
    bool    is_dir, is_executable;
};

struct tarball;

/* 0: the next one, whatever was read of this. -1: enough. */
typedef int tarball_take(void *owner, struct tarball *t, const struct tarball_member *m,
                         struct err *e);

int tarball_each(int tgz_fd, const struct tarball_limits *limits, tarball_take *take, void *owner,
                 struct err *e);

/* ---- for who takes a member ---- */

ssize_t tarball_read(struct tarball *t, void *data, size_t size, struct err *e); /* 0: its end */
/* An error that names the member; `refuse_sys` by errno. Always -1. */
int tarball_refuse(const struct tarball *t, enum err_kind kind, const char *why, struct err *e);
int tarball_refuse_sys(const struct tarball *t, struct err *e);
