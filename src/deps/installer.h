/* installer - the programs that can fill a layer, as a table: how each is called, what its lock is,
 * and how it says what went wrong. Pure.
 *
 * Both run without scripts of packages: the cache that all layers share is writable then. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Where things are in an installer's sandbox; the table's words have the same paths. */
#define INSTALLER_CACHE "/cache"
#define INSTALLER_LAYER "/layer"
#define INSTALLER_BUN "/opt/bun"

struct installer {
    const char *name;
    const char *lock; /* the file with exact versions that it leaves beside node_modules */
    const char *argv[12];
    const char *env[12];
    bool        needs_bun; /* the program is at INSTALLER_BUN; else in the runtime */
    int (*audit)(const char *lock_text, const char *const *registries, struct err *e);
    const char *prefix; /* of the lines in which it complains */
};

const struct installer *installer_find(const char *name, struct err *e);

/* The one to try when this one failed with that error; NULL: the other would fail as well. */
const struct installer *installer_other(const struct installer *i, const struct err *failed);

/* What it says of its failure, as one sentence: ERR_NOT_FOUND (no such package or version),
 * ERR_UNAVAILABLE (the registry does not answer), ERR_INVALID (not what the registry promised),
 * ERR_INTERNAL (anything else). Always -1. */
int installer_reason(const struct installer *i, const char *output, struct err *e);
