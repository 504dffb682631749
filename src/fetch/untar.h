/* untar - unpacks a tarball as unpack_tgz does (npm/unpack.h), in a process that can do nothing
 * else: fetch/roles.h. Blocks. */
#pragma once

#include "npm/tarball.h"

int untar(int tgz_fd, int dir_fd, const struct tarball_limits *limits, struct err *e);
