/* assemble - a runtime in the store: the registry's Node build, and the npm that suits it. */
#pragma once

#include <limits.h>

#include "base/err.h"

/* The directory of the newest runtime that the image accepts, fetched when it is not there yet. Two
 * at once: one fetches, the other waits. */
int assemble_runtime(const char *image, char ret_dir[PATH_MAX], struct err *e);
