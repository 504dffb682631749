/* types_gather - the text that an agent reads: the entry and the files it references, directly or
 * not, in the order in which they are met, as long as there is room; and a list of the rest. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "npm/declarations.h"

/* Each file comes behind a line with its path, whole or not at all; only the entry is cut when it
 * is too long, at the end of a line. `ret_text` must have room for `max` bytes and the entry's
 * path. The list is an array of "PATH (N bytes)", at most 40 rows and 8 KiB, then "and N more". */
void types_gather(const json_t *package, struct declarations *d, struct declaration *entry,
                  size_t max, struct buf *ret_text, json_t *ret_left_out);
