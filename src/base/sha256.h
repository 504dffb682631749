/* sha256 - the hash of FIPS 180-4, and its MAC (RFC 2104).
 *
 * Ours because `jerboa` must start in two milliseconds: linking libcrypto costs 1.4, its first hash
 * more than that (it loads its providers). No table is looked up and nothing branches on the data,
 * so its time tells nothing of what is hashed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_HEX_SIZE = 2 * SHA256_SIZE + 1 };

struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* hashed so far */
    uint8_t  block[64];
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t size);
/* The end, as bytes or as text; sha256_init to use it again. */
void sha256_end(struct sha256 *h, uint8_t ret[SHA256_SIZE]);
void sha256_hex(struct sha256 *h, char ret[SHA256_HEX_SIZE]);

/* A key of up to a block, 64 bytes. The message is what is added between begin and end. */
struct sha256_mac {
    struct sha256 inner, outer;
};

void sha256_mac_begin(struct sha256_mac *m, const void *key, size_t size);
void sha256_mac_add(struct sha256_mac *m, const void *data, size_t size);
void sha256_mac_end(struct sha256_mac *m, uint8_t ret[SHA256_SIZE]);

/* In the same time wherever they differ. */
bool sha256_is_equal(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE]);
