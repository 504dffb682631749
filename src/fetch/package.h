/* package - one npm package as a verified tarball in the store: with the project's configuration,
 * from the registry of its scope. */
#pragma once

#include <limits.h>

#include "base/err.h"

/* `range` may be a tag. The path of the tarball, which stays in the store. */
int package_fetch(const char *name, const char *range, char ret_path[PATH_MAX], struct err *e);

/* What counts of npm's configuration for a key. Credentials are not told: ERR_INVALID. */
int package_config(const char *key, char ret[PATH_MAX], struct err *e);
