/* pem - certificates in a text that may hold other things, private keys among them. */
#pragma once

#include <stddef.h>

/* The next certificate at or after `text`, from its first dash to its last; NULL: there is none. */
const char *pem_next_certificate(const char *text, size_t *ret_size);
