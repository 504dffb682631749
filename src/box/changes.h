/* changes - what a run changed in /workspace/files, with the contents that fit into an answer.
 *
 * Where that is a directory of this machine, its watch tells (files.h); where it is the sandbox's
 * own, init lists it before and after. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/files.h"
#include "sandbox/sandbox.h"

enum {
    CHANGES_SHOWN = 20,          /* rows with their content */
    CHANGES_TEXT_MAX = 16 << 10, /* bytes of a text that are shown */
    CHANGES_IMAGE_MAX = 5 << 20,
    CHANGES_BYTES_MAX = 20 << 20, /* of all contents together */
};

struct change {
    const char       *path; /* relative to files/ */
    enum files_change change;
    int64_t           size;
    const char       *mime_type;
    uint8_t          *content; /* NULL: too large, of no kind that is shown, or deleted */
    size_t            content_size;
};

struct changes;

struct changes_ops {
    void (*begun)(void *owner);      /* what was there is known: the run may start */
    void (*over_quota)(void *owner); /* see files_mark; never where init lists */
    void (*ended)(void *owner);      /* the rows are there */
};

/* `files` NULL: init lists. Ops are called from the loop, begun and ended once each. */
struct changes *changes_start(struct sandbox *s, struct files *files, int64_t quota_bytes,
                              const struct changes_ops *ops, void *owner);
void            changes_end(struct changes *c);  /* after begun, when the run is over */
void            changes_lose(struct changes *c); /* the sandbox is gone: it is not asked any more */

const struct change *changes_rows(const struct changes *c, size_t *ret_n, bool *ret_cut);
void                 changes_free(struct changes *c); /* at any time but inside its ops */
