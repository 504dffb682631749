/* offspring - ends all that a process started, however it was forked, and not itself.
 *
 * For sandboxes without a cgroup of ours. It is complete as long as that process is a subreaper:
 * then nobody leaves its tree. */
#pragma once

#include <sys/types.h>

void offspring_end(pid_t ancestor);
