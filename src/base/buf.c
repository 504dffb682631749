#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

uint8_t *buf_reserve(struct buf *b, size_t size)
{
    if (size > b->max - b->size)
        return NULL;
    if (b->size + size > b->room) {
        size_t room = b->room ? b->room : 256;
        while (room < b->size + size)
            room *= 2;
        if (room > b->max)
            room = b->max;
        b->data = realloc(b->data, room);
        if (!b->data)
            abort();
        b->room = room;
    }
    return b->data + b->size;
}

int buf_add(struct buf *b, const void *data, size_t size)
{
    uint8_t *to;

    if (size == 0)
        return 0; /* an empty buffer has no place to point to */
    to = buf_reserve(b, size);
    if (!to)
        return -1;
    memcpy(to, data, size);
    b->size += size;
    return 0;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int     n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !buf_reserve(b, (size_t)n + 1))
        return -1;
    va_start(ap, fmt);
    vsnprintf((char *)b->data + b->size, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->size += (size_t)n;
    return 0;
}

void buf_drop(struct buf *b, size_t size)
{
    assert(size <= b->size);
    b->size -= size;
    if (b->size > 0)
        memmove(b->data, b->data + size, b->size);
}

char *buf_text(struct buf *b)
{
    uint8_t *end = buf_reserve(b, 1);

    if (!end)
        return NULL;
    *end = '\0';
    return (char *)b->data;
}
