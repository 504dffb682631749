/* document - JSON that others published: a registry's answers, a package.json.
 *
 * npm reads it with JSON.parse, which minds less than ours: members that come twice, a byte order
 * mark, \u0000, half of a surrogate pair (where a registry cut a description or a README), bytes
 * that are no UTF-8, integers of any length. So does this; what is no character becomes U+FFFD.
 * What parsing would take is bounded: "{}" is two bytes here and two hundred in memory, and a
 * million of them are a few kilobytes on the wire. */
#pragma once

#include "base/json.h"

/* Changes the text, never its size. NULL: not JSON, or too many values; the sentence quotes nothing
 * of it. */
json_t *document_parse(char *text, size_t size, struct err *e);
