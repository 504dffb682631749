/* random - bytes and names that nobody can guess, from the kernel. */
#pragma once

#include <stddef.h>

void random_bytes(void *ret, size_t size);
void random_id(char ret[33]); /* 128 bits in hexadecimal, for ids that are rights */

/* Which of n buckets such an id belongs to: some of its digits are as good as a hash. Any text may
 * be asked about. */
size_t random_id_bucket(const char *id, size_t n);
