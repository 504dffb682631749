/* pause - the process that an ordinary user's podman leaves is ended again.
 *
 * It keeps his namespaces, in the cgroup of whoever asked first, for good. Every command that shows
 * whether podman works starts one where there is none: `version`, `info`, `unshare`, `images` do;
 * `--version` does not, but shows nothing. `system migrate` ends it, and stops his containers with
 * it. So who must leave nothing behind adopts what its commands leave, and ends that one; podman
 * makes another when it is next asked. One that was there before is nobody's child here, and
 * stays; so does one that somebody else has come to use. */
#pragma once

#include <stdbool.h>

/* From now on. False: there are children already (of who became us), from whom they could not be
 * told, and nothing is adopted. */
bool pause_adopt(void);
/* The others among them end by themselves: they are awaited, a while. */
void pause_end(void);
