/* unpack - the files of an npm tarball, written below a directory and nowhere else.
 *
 * The archive is hostile: only gzip and tar are understood; members are regular files and
 * directories, anything else is refused by name, and so are absolute names and "..". Each name is
 * resolved by the kernel beneath the directory, through no symlink. The first part of a name
 * ("package/") is dropped, as npm does. Modes become 0755 or 0644, less the umask; owners and times
 * are ours. On error what was written so far stays: the caller throws the directory away. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct unpack_limits {
    int64_t members;
    int64_t bytes;
};

extern const struct unpack_limits unpack_limits; /* what packages in the wild stay well below */

int unpack_tgz(int tgz_fd, int dir_fd, const struct unpack_limits *limits, struct err *e);
