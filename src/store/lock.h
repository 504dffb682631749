/* lock - flock on what is being written, so that two never write the same; the kernel drops it with
 * its holder, however that ends. Who waited for a lock must ask whether the name still means the
 * same: the holder may have renamed or removed it meanwhile. */
#pragma once

#include <stdbool.h>

int  lock_take(int fd, int how);          /* as flock(2), not disturbed by signals */
int  lock_wait(int fd, const char *what); /* LOCK_EX; after a second stderr tells on what */
bool lock_is_still(int dir_fd, const char *name, int fd);
