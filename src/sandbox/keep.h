/* keep - what a run prints on one stream: its beginning and its end in memory, for the answer, and
 * the whole of it in a file without a name, for who asks. Both are bounded.
 *
 * As long as it fits into what is shown there is no file. A disk that is full loses the middle of
 * the output, not the answer: keep_is_whole says so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { KEEP_SHOWN = 48 << 10, KEEP_KEPT = 64 << 20 };

struct keep;

/* dir: where the file goes; where it cannot be made it is memory instead (memfd). Borrowed. */
struct keep *keep_new(size_t shown, size_t kept, const char *dir);
struct keep *keep_ref(struct keep *k); /* another owner: each frees it */
void         keep_free(struct keep *k);

/* False: that was more than may be kept. The part that fits was taken; the run is to be ended. */
bool keep_add(struct keep *k, const uint8_t *bytes, size_t size);

uint64_t keep_size(const struct keep *k);     /* bytes that were taken */
bool     keep_is_whole(const struct keep *k); /* all of them can be read */
/* At most max of the bytes from offset on, added to `ret`; nothing at the end. */
int keep_read(const struct keep *k, uint64_t offset, size_t max, struct buf *ret, struct err *e);

struct keep_text {
    char    *text; /* UTF-8, NUL at its end and perhaps inside; the caller frees */
    size_t   size;
    uint64_t left_out; /* bytes; 0: it is all there */
    size_t   mended;   /* bytes that belong to no character, each U+FFFD now */
};

/* For reading: with a line in the middle that tells how much is left out, and, unless uri is NULL,
 * where the whole is. At most three times `shown` and that line. */
struct keep_text keep_text(const struct keep *k, const char *uri);
