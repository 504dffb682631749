/* image - the names of Node images, as docker's, and which versions of Node they stand for. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct image {
    char range[32];   /* of versions, for semver_range_test */
    bool any_version; /* "lts", "latest": what is newest is meant, not a version */
};

/* "node:24", "22.3", "lts-slim", "docker.io/library/node:current-bookworm"; the variant behind the
 * version is accepted and says nothing here. ERR_INVALID tells what would do. */
int image_parse(const char *name, struct image *ret, struct err *e);
