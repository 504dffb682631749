/* tree - a directory with everything below it, as sandboxed code may have left it:
 * deep, unreadable, full of links. Nothing is followed. */
#pragma once

#include <dirent.h>
#include <stdint.h>

#include "base/err.h"

enum { TREE_DEPTH_MAX = 128 }; /* one descriptor a level */

int tree_open_dir(int parent_fd, const char *name); /* -1, with errno: also when it is a link */

/* The directory that a relative path ends in, and the name in it, which points into the path; -1,
 * with errno. A part that is empty, `.` or `..` is EINVAL; links on the way are not followed. */
int tree_open_parent(int dir_fd, const char *path, const char **ret_name);
/* The same, with a way of one's own into each directory: -1, with errno, if there is none. */
int tree_walk_to_parent(int dir_fd, const char                                           *path,
                        int (*enter)(void *owner, int parent_fd, const char *name), void *owner,
                        const char **ret_name);

/* What lies in a directory, from the first one on, whatever else reads dir_fd; NULL: errno says
 * why. tree_next leaves "." and ".." out; NULL: that was the last one. */
DIR           *tree_list(int dir_fd);
struct dirent *tree_next(DIR *dir);

/* What it takes on the disk. On error, too, what could be counted: ERR_LIMIT when it is deeper than
 * TREE_DEPTH_MAX. */
int tree_size(int dir_fd, int64_t *ret_bytes, struct err *e);

/* Removes what is in the directory, however deep. What could not be removed shows when the
 * directory itself is. */
void tree_remove(int dir_fd);
