/* scripts - what packages run when they are installed: a script of package.json, or a binding.gyp.
 */
#pragma once

#include "base/err.h"

/* Whether a package in a fresh node_modules has one: 1 or 0. No package's code has run in it yet,
 * but its files are anybody's: nothing is followed, and what cannot be understood counts as yes. */
int scripts_look(int modules_fd, struct err *e);

/* Why `npm rebuild` failed, by what it and they printed: a tool that this machine lacks
 * (ERR_UNAVAILABLE), or the first complaint (ERR_INTERNAL). Always -1. */
int scripts_reason(const char *output, struct err *e);
