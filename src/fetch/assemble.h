/* assemble - a runtime in the store: the registry's Node build, and the npm that suits it. */
#pragma once

#include <limits.h>

#include "base/err.h"

/* The directory of the newest runtime that the image accepts, fetched when it is not there yet. Two
 * at once: one fetches, the other waits. One that is damaged by its seal is fetched again. */
int assemble_runtime(const char *image, char ret_dir[PATH_MAX], struct err *e);

/* The same for the newest one that is in the store already, once every byte of it was compared: no
 * network unless something is wrong, or none is there. */
int assemble_verified(const char *image, char ret_dir[PATH_MAX], struct err *e);
