/* tool - a program that Jerboa itself runs, from an npm package: an entry of the store,
 * tools/NAME-MAJOR-ARCH, sealed like a runtime. Fetched once by jerboa-fetch. */
#pragma once

#include <limits.h>

#include "base/err.h"

struct tool {
    const char *name;    /* as jerboa-fetch knows it */
    const char *package; /* of npm */
    const char *range;   /* of versions that we know how to call */
    const char *entry;   /* its name below tools/ */
    const char *program; /* in it */
};

extern const struct tool tool_bun;

const struct tool *tool_find(const char *name, struct err *e);

/* Its directory, real path, held while *ret_fd is open. Blocks while it is fetched; progress is on
 * stderr. */
int tool_ensure(const struct tool *t, char ret_dir[PATH_MAX], int *ret_fd, struct err *e);
