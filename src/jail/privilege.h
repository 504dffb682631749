/* privilege - giving rights up, for good: capabilities, new privileges, system calls, resources. */
#pragma once

#include <stdint.h>

#include "base/err.h"

int privilege_drop_capabilities(
    struct err *e);              /* bounding set included: exec cannot bring them back */
void privilege_leave_keys(void); /* a session keyring of its own */
int  privilege_forbid_new(struct err *e);
int  privilege_filter_calls(struct err *e); /* the table of filter_gen.c, compiled at build time */
/* Without a cgroup: no memory that neither a process maps nor a file of the sandbox holds, for the
 * jail could not see it (memfd_create, shmget, semget and mmap of shared anonymous memory, whose
 * pages stay when they are no longer mapped, get ENOSYS; /dev/zero: landlock.c). Before the other
 * one, which forbids it. */
int privilege_filter_unseen(struct err *e);
int privilege_limit_resources(int64_t fds, struct err *e);

/* Processes and threads of this user namespace: for sandboxes without a cgroup. Since Linux 5.14
 * the kernel counts them for each user namespace by itself, so that neither what the same user runs
 * outside nor his other sandboxes count here. Root of the host is exempt. */
int privilege_limit_processes(int64_t most, struct err *e);
