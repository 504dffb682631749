/* base64 - the standard alphabet, padded; decoding is strict: no blanks, no missing padding, and no
 * bits set that do not count, so that one text stands for one value. */
#pragma once

#include <stddef.h>
#include <stdint.h>

char    *base64_encode(const void *data, size_t size);                     /* the caller frees */
uint8_t *base64_decode(const char *text, size_t length, size_t *ret_size); /* NULL: not base64 */
