/* watch - what bounds the memory of a sandbox that has no cgroup, and ends what runs in it.
 *
 * The jail looks at the processes of the sandbox every now and then, the more often the nearer they
 * are to the limit, and kills all of them but init when they are over it. A wall with holes: what
 * is faster than a look overshoots, and bytes in sockets are not seen; memory that neither a
 * process maps nor a file of the sandbox holds (memfd, SysV) is forbidden by the filter instead.
 * Hence it counts as a missing one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct watch {
    pid_t    init;
    int      init_fd;          /* its pidfd; borrowed, like up_fd */
    int      up_fd;            /* a pipe's end: its other end is closed once the new root stands */
    int      proc_fd, disk_fd; /* the sandbox's own /proc and writable tmpfs, or -1 */
    bool    *has_killed;       /* shared with the helper */
    int64_t  limit_bytes;
    uint64_t peak_bytes; /* the most that was seen */
    uint64_t kills;      /* how often it was over the limit */
    int      failures;   /* looks that could not be finished, in a row */
};

void watch_init(struct watch *w, pid_t init, int init_fd, int up_fd, int64_t limit_bytes);
void watch_done(struct watch *w);

int  watch_look(struct watch *w); /* returns after how many ms the next one is due */
void watch_end(struct watch *w);  /* kills everything but init */
