#include "base/random.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void random_bytes(void *ret, size_t size)
{
    uint8_t *at = ret;

    while (size > 0) {
        ssize_t n = getrandom(at, size, 0);
        if (n < 0 && errno != EINTR)
            abort(); /* no kernel we run on is without it */
        if (n > 0)
            at += n, size -= (size_t)n;
    }
}

void random_id(char ret[33])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t           bytes[16];

    random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        ret[2 * i] = hex[bytes[i] >> 4];
        ret[2 * i + 1] = hex[bytes[i] & 15];
    }
    ret[32] = '\0';
}

size_t random_id_bucket(const char *id, size_t n)
{
    unsigned digits = 0;

    sscanf(id, "%8x", &digits);
    return digits % n;
}
