/* unpack - the files of an npm tarball, written below a directory and nowhere else.
 *
 * Which members there are, npm/tarball.h decides. Each name is resolved by the kernel beneath the
 * directory, through no symlink. Modes become 0755 or 0644, less the umask; owners and times are
 * ours. On error what was written so far stays: the caller throws the directory away. */
#pragma once

#include "npm/tarball.h"

int unpack_tgz(int tgz_fd, int dir_fd, const struct tarball_limits *limits, struct err *e);
