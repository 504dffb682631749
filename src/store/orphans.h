/* orphans - what podman has no record of: the processes around a container of its. A client that
 * was killed while it made one leaves it to podman as one that was never made, and removed as such;
 * conmon, which watches over it, and its first process wait for a start that nobody will give. A
 * conmon that was killed meanwhile leaves a client that waits for its word. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of containers with such a name (fnmatch(3)), which nobody wants any more: those that wait are
 * ended, those that run have until end_ms to end by themselves; then clients are killed. True: none
 * was left. Blocks. */
bool orphans_end(const char *names, int64_t end_ms);
