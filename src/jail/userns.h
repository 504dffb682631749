/* userns - user namespaces: the maps of a child, and namespaces that exist only to carry a map. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* Who is 0 in the namespace of process pid is uid and gid here, and so on for `count` ids. One id
 * alone, which must then be the caller's own, needs no rights: the child keeps its groups. */
int userns_map(pid_t pid, uid_t uid, gid_t gid, unsigned count, struct err *e);

/* A namespace for an idmapped mount: a file of `uid_on_disk` is seen as owned by `uid_seen`.
 * Returns a descriptor. */
int userns_for_mount(uid_t uid_on_disk, gid_t gid_on_disk, uid_t uid_seen, struct err *e);
