/* tree - a directory with everything below it, as sandboxed code may have left it:
 * deep, unreadable, full of links. Nothing is followed. */
#pragma once

#include <stdint.h>

#include "base/err.h"

enum { TREE_DEPTH_MAX = 128 }; /* one descriptor a level */

/* What it takes on the disk. On error, too, what could be counted: ERR_LIMIT when it is deeper than
 * TREE_DEPTH_MAX. */
int tree_size(int dir_fd, int64_t *ret_bytes, struct err *e);

/* Removes what is in the directory, however deep. What could not be removed shows when the
 * directory itself is. */
void tree_remove(int dir_fd);
