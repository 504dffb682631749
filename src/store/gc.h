/* gc - removes from the store what nobody used for long, or what it has no room for.
 *
 * Entries of runtimes/, layers/ and tools/, and cache/ as a whole, go in the order of their last
 * use; never one that somebody holds (store/entry.h), and never the runtime that is taken when
 * nobody names one. What killed writers left, and downloads of yesterday, go first: all of it can
 * be had again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { GC_DAYS = 30 }; /* what was used since then stays, if there is room */

struct gc_spec {
    int64_t max_bytes; /* of the whole store; -1: no bound */
    int64_t max_age_ms;
    void (*removed)(void *owner, const char *path, int64_t bytes); /* path below the store */
    void *owner;
};

struct gc_result {
    size_t  removed;
    int64_t removed_bytes;
    int64_t left_bytes;
    size_t  held; /* that would have gone */
};

int gc_run(const struct gc_spec *spec, struct gc_result *ret, struct err *e);
