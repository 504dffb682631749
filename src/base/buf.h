/* buf - bytes that grow up to a maximum, never past it.
 *
 * There is no buffer without a cap: buf_init demands one. A write that would pass it changes
 * nothing and returns -1; whether that is an error is the caller's to say. Memory running out
 * aborts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data;
    size_t   size; /* bytes in use */
    size_t   room; /* bytes allocated */
    size_t   max;
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);

int      buf_add(struct buf *b, const void *data, size_t size);
int      buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
uint8_t *buf_reserve(struct buf *b, size_t size); /* room for size more bytes, or NULL */
void     buf_drop(struct buf *b, size_t size);    /* forget the first size bytes */
char    *buf_text(struct buf *b);                 /* NUL-ended view; needs one byte below max */

#define autobuf __attribute__((cleanup(buf_done)))
