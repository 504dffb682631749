/* snapshot - the files that a sandbox's own directory had at one moment, and what another moment
 * made of them. Pure: whoever listed them hands the rows in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/files.h"
#include "sandbox/listing.h"

struct snapshot_file {
    char   *path; /* without the prefix */
    int64_t size, mtime_ns;
};

struct snapshot { /* zeros: it has nothing */
    struct snapshot_file *files;
    size_t                n;
    bool                  cut; /* there was more, so what is not here may exist */
};

struct snapshot_change {
    const struct snapshot_file *file; /* of the later one, or, if deleted, of the earlier one */
    enum files_change           change;
};

/* Those below `prefix`, without directories. Once for each snapshot. */
void snapshot_fill(struct snapshot *s, const char *prefix, const struct listing_row *rows, size_t n,
                   bool cut);
void snapshot_done(struct snapshot *s);

/* Sorted by path; the caller frees the list. Of snapshots that are cut only what both have is
 * compared: what one lacks may have been left out. */
struct snapshot_change *snapshot_compare(const struct snapshot *before,
                                         const struct snapshot *after, size_t *ret_n);
