/* upload - one file on its way into a sandbox. It appears under its name whole, or not at all. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/sandbox.h"

struct upload;

/* `bytes` stays the caller's and must live until done. done is called once, from the loop; a
 * sandbox that ends meanwhile is an error like any other. No deadline: the sandbox's own end bounds
 * it. */
struct upload *upload_start(struct sandbox *s, const char *path, unsigned mode,
                            const uint8_t *bytes, size_t                          size,
                            void (*done)(void *owner, const struct err *e), void *owner);
