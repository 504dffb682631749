/* npm_config - what the user's npm configuration says: which registry, whom to trust.
 *
 * Environment (npm_config_KEY, any of the two usual spellings) before ~/.npmrc before /etc/npmrc
 * before what was compiled in. Read on demand, nothing is kept. */
#pragma once

#include <limits.h>
#include <stddef.h>

#include "base/err.h"

struct npm_config {
    char registry[1024];   /* http(s) URL, ends with "/" */
    char cafile[PATH_MAX]; /* certificates to trust, or "": the system's */
};

int npm_config_load(struct npm_config *ret, struct err *e);

/* The last value of `key` in the text of an npmrc, or "". ERR_LIMIT when it does not fit. */
int npm_config_find(const char *text, const char *key, char *ret, size_t size, struct err *e);
