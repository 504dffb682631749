/* token - who may ask: a file of lines `NAME TOKEN`, where NAME becomes the principal.
 *
 * Blanks separate; a line that begins with # is a remark, and so is what follows TOKEN and begins
 * with #. A token has at least 16 bytes and does not begin with #; inside one # is as any other
 * byte. A person may have several tokens, a token belongs to one person.
 *
 * Only digests are kept. A presented token is compared with all of them, in the same time whether
 * and where one matches. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "transport/principal.h"

struct tokens;

/* NULL on error; also when others than the owner may read the file. */
struct tokens *tokens_load(const char *path, struct err *e);
struct tokens *tokens_parse(char *text, struct err *e); /* NULL on error; the text is wiped */
void           tokens_free(struct tokens *t);

struct principal *tokens_find(const struct tokens *t, const char *token); /* or NULL */

/* The token in the value of an Authorization header (`Bearer TOKEN`); NULL: there is none. */
const char *token_of_header(const char *authorization);
