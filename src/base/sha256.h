/* sha256 - the hash of FIPS 180-4, for names of what the store keeps.
 *
 * Ours because `jerboa` must start in two milliseconds: libcrypto's first hash alone costs more
 * than that (it loads its providers). It hashes short texts; nothing secret depends on its timing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32 };

struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* hashed so far */
    uint8_t  block[64];
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t size);
void sha256_hex(struct sha256 *h,
                char           ret[2 * SHA256_SIZE + 1]); /* the end; init to use it again */
