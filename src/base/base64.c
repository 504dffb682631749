#include "base/base64.h"

#include <stdlib.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void *allocate(size_t size)
{
    void *p = malloc(size);

    if (!p)
        abort();
    return p;
}

char *base64_encode(const void *data, size_t size)
{
    const uint8_t *in = data;
    char          *text = allocate(4 * ((size + 2) / 3) + 1), *out = text;

    for (size_t i = 0; i < size; i += 3) {
        size_t   left = size - i;
        uint32_t v = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                     (left > 2 ? in[i + 2] : 0);
        *out++ = alphabet[v >> 18];
        *out++ = alphabet[v >> 12 & 63];
        *out++ = (char)(left > 1 ? alphabet[v >> 6 & 63] : '=');
        *out++ = (char)(left > 2 ? alphabet[v & 63] : '=');
    }
    *out = '\0';
    return text;
}

static int value_of(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

/* One group of four with `padding` equal signs at its end; -1: not base64. */
static int decode_group(const char *text, int padding, uint8_t out[3])
{
    uint32_t v = 0;

    for (int i = 0; i < 4 - padding; i++) {
        int bits = value_of(text[i]);
        if (bits < 0)
            return -1;
        v |= (uint32_t)bits << (18 - 6 * i);
    }
    out[0] = (uint8_t)(v >> 16);
    out[1] = (uint8_t)(v >> 8);
    out[2] = (uint8_t)v;
    return (padding == 1 && out[2]) || (padding == 2 && (out[1] || out[2])) ? -1 : 0;
}

uint8_t *base64_decode(const char *text, size_t length, size_t *ret_size)
{
    uint8_t *data;
    int      padding;

    if (length % 4)
        return NULL;
    padding = length == 0 ? 0 : (text[length - 1] == '=') + (text[length - 2] == '=');
    data = allocate(length / 4 * 3 + 1);
    for (size_t i = 0; i < length; i += 4)
        if (decode_group(text + i, i + 4 == length ? padding : 0, data + i / 4 * 3) < 0) {
            free(data);
            return NULL;
        }
    *ret_size = length / 4 * 3 - (size_t)padding;
    return data;
}
