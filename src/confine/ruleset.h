/* ruleset - Landlock by its three system calls: what is handled is forbidden, except beneath places
 * that are allowed. For this process and all that come from it, for good.
 *
 * Versions are upwards compatible: what a kernel does not know yet is left out of what is asked. */
#pragma once

#include <linux/landlock.h>
#include <stdint.h>

#include "base/err.h"

/* Newer than some headers that we are built with. */
enum {
    RULESET_FS_TRUNCATE = 1 << 14, /* version 3 */
    RULESET_NET_BIND_TCP = 1 << 0, /* version 4 */
    RULESET_NET_CONNECT_TCP = 1 << 1,
    RULESET_SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, /* version 6 */
    RULESET_SCOPE_SIGNAL = 1 << 1,
};

struct ruleset { /* as the kernel of the newest version has it */
    uint64_t fs, net, scoped;
};

/* The version of Landlock here; -1 when there is none that serves. */
int ruleset_version(struct err *e);

/* A descriptor: everything that `handled` names is forbidden. */
int ruleset_make(int version, struct ruleset handled, struct err *e);

/* Beneath what `place_fd` is open at (O_PATH will do), `fs` is allowed again. */
int ruleset_allow(int ruleset_fd, int version, int place_fd, uint64_t fs, struct err *e);
int ruleset_allow_path(int ruleset_fd, int version, const char *path, uint64_t fs, struct err *e);

int ruleset_enter(int ruleset_fd, struct err *e); /* wants no_new_privs first */
