#include "base/sha256.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* The 64 words that the rounds take: the block's sixteen, and what is mixed from them. */
static void schedule(const uint8_t *block, uint32_t w[64])
{
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

static void hash_block(struct sha256 *h)
{
    uint32_t w[64], s[8], t, u;

    schedule(h->block, w);
    memcpy(s, h->state, sizeof s);
    for (int i = 0; i < 64; i++) {
        t = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
            ((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[i] + w[i];
        u = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
            ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t;
        s[0] = t + u;
    }
    for (int i = 0; i < 8; i++)
        h->state[i] += s[i];
}

void sha256_init(struct sha256 *h)
{
    /* of the square roots of the first eight primes */
    *h = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *h, const void *data, size_t size)
{
    const uint8_t *p = data;

    while (size > 0) {
        size_t at = h->bytes % sizeof h->block, n = sizeof h->block - at;
        if (n > size)
            n = size;
        memcpy(h->block + at, p, n);
        h->bytes += n;
        p += n;
        size -= n;
        if (h->bytes % sizeof h->block == 0)
            hash_block(h);
    }
}

static void finish(struct sha256 *h)
{
    static const uint8_t padding[64] = {0x80};
    uint64_t             bits = h->bytes * 8;
    uint8_t              length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(h, padding, 1 + (119 - h->bytes % 64) % 64); /* up to 8 bytes before a block's end */
    sha256_add(h, length, sizeof length);
}

void sha256_end(struct sha256 *h, uint8_t ret[SHA256_SIZE])
{
    finish(h);
    for (int i = 0; i < SHA256_SIZE; i++)
        ret[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hex(struct sha256 *h, char ret[SHA256_HEX_SIZE])
{
    finish(h);
    for (size_t i = 0; i < 8; i++)
        snprintf(ret + 8 * i, 9, "%08x", h->state[i]);
}

/* ---- the MAC ---- */

static void begin_with(struct sha256 *h, const uint8_t *key, size_t size, uint8_t mask)
{
    uint8_t block[64];

    memset(block, mask, sizeof block);
    for (size_t i = 0; i < size; i++)
        block[i] ^= key[i];
    sha256_init(h);
    sha256_add(h, block, sizeof block);
}

void sha256_mac_begin(struct sha256_mac *m, const void *key, size_t size)
{
    assert(size <= 64);
    begin_with(&m->inner, key, size, 0x36);
    begin_with(&m->outer, key, size, 0x5c);
}

void sha256_mac_add(struct sha256_mac *m, const void *data, size_t size)
{
    sha256_add(&m->inner, data, size);
}

void sha256_mac_end(struct sha256_mac *m, uint8_t ret[SHA256_SIZE])
{
    uint8_t digest[SHA256_SIZE];

    sha256_end(&m->inner, digest);
    sha256_add(&m->outer, digest, sizeof digest);
    sha256_end(&m->outer, ret);
}

bool sha256_is_equal(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE])
{
    volatile uint8_t differs = 0; /* or the compiler might leave early */

    for (int i = 0; i < SHA256_SIZE; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}
