#include "base/utf8.h"

#include <stdlib.h>

static bool continues(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

size_t utf8_size(const uint8_t *p, size_t size)
{
    size_t n;

    if (size == 0)
        return 0;
    n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n == 0 || n > size || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (!continues(p[i]))
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) || /* overlong, surrogate */
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))   /* overlong, too large */
        return 0;
    return n;
}

bool utf8_is_valid(const uint8_t *p, size_t size)
{
    for (size_t i = 0, n; i < size; i += n) {
        n = utf8_size(p + i, size - i);
        if (n == 0)
            return false;
    }
    return true;
}

size_t utf8_cut_end(const uint8_t *p, size_t size)
{
    for (size_t n = 1; n <= 3 && n <= size; n++) {
        uint8_t byte = p[size - n];
        if (continues(byte))
            continue;
        size_t whole = byte < 0xc2 || byte > 0xf4 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
        return whole > n ? n : 0;
    }
    return 0;
}

size_t utf8_cut_front(const uint8_t *p, size_t size)
{
    size_t n = 0;

    while (n < 3 && n < size && continues(p[n]))
        n++;
    return n < size && continues(p[n]) ? 0 : n; /* four in a row are no rest of a character */
}

size_t utf8_first(const uint8_t *p, size_t size, size_t characters)
{
    size_t at = 0;

    for (size_t n; at < size && characters > 0; at += n ? n : 1, characters--)
        n = utf8_size(p + at, size - at);
    return at;
}

size_t utf8_mend(const uint8_t *p, size_t size, struct buf *ret)
{
    size_t mended = 0;

    for (size_t i = 0, n; i < size; i += n ? n : 1) {
        n = utf8_size(p + i, size - i);
        if (buf_add(ret, n ? p + i : (const uint8_t *)"\xef\xbf\xbd", n ? n : 3) < 0)
            abort();
        mended += n == 0;
    }
    return mended;
}
