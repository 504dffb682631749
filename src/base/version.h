/* version - programs of one release, never a mixture.
 *
 * An upgrade replaces files while a server runs. What that starts from then on would be of another
 * release, with other messages and other walls. So who starts another program of ours tells it his
 * version, and that one refuses any other, in a sentence that says what to do. Builds that call
 * themselves the same are taken for the same. */
#pragma once

#include "base/err.h"

extern const char version_own[];
extern const char version_answer[]; /* --answer=VERSION: how jerboa-fetch is told */

/* `program` is this one, `asked` the version of who started it; NULL: he told none. */
int version_check(const char *program, const char *asked, struct err *e);
