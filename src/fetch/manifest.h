/* manifest - everything in an entry of the store with its sha256: written when the entry is
 * finished, compared when somebody wants to know (see store/seal.h for the form). */
#pragma once

#include "base/err.h"

/* Writes the seal of the entry; `front` (ended by NULL) are the files that each use looks at. */
int manifest_seal(int dir_fd, const char *const *front, struct err *e);

/* 0 when every file, directory and link is as it was sealed, and nothing was added; else
 * ERR_INVALID names the first that is not. */
int manifest_verify(int dir_fd, struct err *e);
