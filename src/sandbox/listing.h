/* listing - what lies in a directory of a sandbox's workspace. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pipe/message.h"
#include "sandbox/sandbox.h"

struct listing;

/* Of rows together SCAN_BYTES_MAX is a bound as well. */
struct listing_bounds {
    uint32_t entries;
    uint32_t depth; /* levels; 1: only what is in the directory itself */
    int64_t  ms;
};

/* kind, size, mtime_ns, path: relative to /workspace, as download_start takes it; any bytes but
 * NUL, never empty, and without `.` or `..` in it. */
#define listing_row message_row

/* dir is relative to /workspace, empty for itself. Links are listed, not followed. The rows come
 * level by level; cut: a bound was met, or something could not be looked at, and these are not all.
 * done is called once, from the loop, never after cancel; rows are borrowed for the call. */
struct listing *listing_start(struct sandbox *s, const char *dir,
                              const struct listing_bounds *bounds,
                              void (*done)(void *owner, const struct err *e,
                                           const struct listing_row *rows, size_t n, bool cut),
                              void *owner);
void            listing_cancel(struct listing *l); /* frees it */
