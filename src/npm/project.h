/* project - the directory whose .npmrc is the project's, found as npm finds it: the nearest one
 * above (or at) the working directory with a package.json or node_modules; when that is a workspace
 * of one further up, that one; else the working directory itself. */
#pragma once

#include <limits.h>

#include "base/err.h"

int project_find(char ret[PATH_MAX], struct err *e);
