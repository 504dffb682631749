/* integrity - the sha512 that a registry promises for a tarball, and the check against it.
 *
 * Only sha512 counts: a promise without one is refused, whatever else it holds. */
#pragma once

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { INTEGRITY_BYTES = 64 };

struct integrity {
    uint8_t sha512[INTEGRITY_BYTES];
};

/* "sha512-…" in base64, alone or among others separated by blanks, as in `dist.integrity`. */
int integrity_parse(const char *text, struct integrity *ret, struct err *e);

/* Bytes as they come; integrity_begin may be called again to begin anew; integrity_end compares and
 * frees, and must be called. */
struct integrity_sum {
    EVP_MD_CTX *ctx;
};

void integrity_begin(struct integrity_sum *s);
void integrity_add(struct integrity_sum *s, const void *data, size_t size);
int  integrity_end(struct integrity_sum *s, const struct integrity *promised, struct err *e);

/* Whether what came so far is all of it; more may be added afterwards. */
bool integrity_is_whole(const struct integrity_sum *s, const struct integrity *promised);
