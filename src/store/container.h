/* container - an image of a container daemon as a runtime: what docker and podman know, asked
 * through their own programs. Blocks. ERR_UNAVAILABLE: such a program is not there, fails, and then
 * its own reason is the error, or says nothing for ten seconds. */
#pragma once

#include "base/err.h"
#include "store/runtime.h"

/* How `jerboa container` ends then: the image is not to blame. */
enum { CONTAINER_UNAVAILABLE = 3 };

/* The version of the daemon, if it answers; nothing is said on stderr. ERR_NOT_FOUND: there is no
 * such program. */
int container_version(const char *program, char ret[64], struct err *e);

/* As images are named: letters, digits and ._-/:@, at most 250. */
int container_check(const char *image, struct err *e);

/* An image that the daemon has; ERR_NOT_FOUND: it has not. One that declares volumes is ERR_LIMIT:
 * they would be writable beside a read-only root, and without a size. ret->dir is what it is run
 * by, ret->version the Node that it says it has (NODE_VERSION, as all official images do), or "".
 * It needs no holding. */
int container_find(const char *program, const char *image, struct runtime *ret, struct err *e);

/* The same, but one that is missing is pulled, within a quarter of an hour. The daemon's progress
 * is shown on stderr, and the end of what it said is the error, ERR_NOT_FOUND. */
int container_ensure(const char *program, const char *image, struct runtime *ret, struct err *e);

/* The image of the native engine whose Node has the same major version ("node:24"): what installs
 * dependencies for it, outside. */
int container_sibling(const struct runtime *runtime, char ret[32], struct err *e);

/* Removes the containers of runs of Jerboa that are over: those that are labelled with a run of
 * this daemon (engine/endpoint.h has its name) whose lock (container_lock) nobody holds any more.
 * Others' are left alone. What cannot be removed is left to the next time, and none is begun after
 * ten seconds: nobody is refused a sandbox for it. For who was just answered: one that is silent
 * would be waited for twice. */
void container_sweep(const char *program, const char *daemon);

/* Removes one, in whatever state it is. One that the daemon has yet to make stays, for the next
 * sweep. */
int container_remove(const char *program, const char *name, struct err *e);

/* Held as long as the descriptor that is returned is open: containers of this run are not to be
 * swept. */
int container_lock(const char *daemon, const char *run_id, struct err *e);
/* All of its containers are gone, and none can come. */
void container_unlock(const char *daemon, const char *run_id);
