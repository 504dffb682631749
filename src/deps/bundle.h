/* bundle - all certificates that are trusted inside in one file of the store, for engines that can
 * show a sandbox files of this machine as they are and compose none. Certificates alone: whoever
 * names a file may keep his key in it. */
#pragma once

#include <limits.h>

#include "base/err.h"

/* Those of native_bundle, of `files` (ended by NULL) and of `text` (or NULL). The file is named by
 * what is in it, so it never changes. Returns a descriptor that holds it: `jerboa gc` removes those
 * that nobody used since yesterday. */
int bundle_ensure(const char *const *files, const char *text, char ret[PATH_MAX], struct err *e);
