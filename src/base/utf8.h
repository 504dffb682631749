/* utf8 - which bytes are characters (RFC 3629), and how to mend what is not. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* How many bytes the character at `p` has; 0: it is none, or not whole. */
size_t utf8_size(const uint8_t *p, size_t size);
bool   utf8_is_valid(const uint8_t *p, size_t size);

/* How many bytes at the end are the beginning of a character that is not whole; how many at the
 * front are the rest of one. Both 0 to 3: where to cut. */
size_t utf8_cut_end(const uint8_t *p, size_t size);
size_t utf8_cut_front(const uint8_t *p, size_t size);

/* How many bytes the first `characters` take; a byte that belongs to none counts as one, as
 * utf8_mend shows it. */
size_t utf8_first(const uint8_t *p, size_t size, size_t characters);

/* A copy with U+FFFD for each byte that belongs to no character: up to three times the size.
 * Returns how many there were. `ret` must have the room. */
size_t utf8_mend(const uint8_t *p, size_t size, struct buf *ret);
