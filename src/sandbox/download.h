/* download - one file of the workspace on its way out of a sandbox. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/sandbox.h"

struct download;

/* The first `max` bytes of a regular file; path is relative to /workspace, links are not followed.
 * `whole` is its size: larger than `size` when there was more. A file that is written meanwhile
 * comes as it was read. done is called once, from the loop, never after cancel; bytes are borrowed
 * for the call. ERR_NOT_FOUND: there is none; ERR_INVALID: no path that could be below. */
struct download *download_start(struct sandbox *s, const char *path, size_t max,
                                void (*done)(void *owner, const struct err *e, const uint8_t *bytes,
                                             size_t size, uint64_t whole),
                                void *owner);
/* The same, a piece at a time as it comes, so that it may be large; `piece` says false to have no
 * more of it. done gets no bytes, and how many there were. */
struct download      *
download_start_pieces(struct sandbox *s, const char *path, size_t max,
                           bool (*piece)(void *owner, const uint8_t *bytes, size_t size),
                           void (*done)(void *owner, const struct err *e, const uint8_t *bytes,
                                   size_t size, uint64_t whole),
                           void *owner);
void download_cancel(struct download *d); /* frees it */
