/* template - URI templates as far as resources need them: {name} is one path segment, {+name} a
 * path with its slashes. No value is empty. Where several would do, the first variable takes as
 * much as it can, as in a regular expression.
 *
 * Values are percent-decoded, and then are texts that can stand in a path:
 * - A slash in a value is a slash of the URI: %2F matches no variable, as no file name has it, and
 *   who looks at URIs (a gateway, a rule) sees the same segments as we.
 * - No segment of a value is "." or "..", however it is written: URIs have none (RFC 3986, 5.2.4).
 * - Bad escapes, %00, and what is not UTF-8 match no variable.
 * A value may still begin with a slash, have empty segments, control characters and newlines; and
 * what it names may be a link. Below a folder, open it with openat2 and RESOLVE_BENEATH.
 *
 * Literals match as they are written: neither case nor escapes are made equal. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

/* Past these nothing matches, so that the work for a hostile URI is bounded. */
enum { TEMPLATE_VARIABLES_MAX = 16, TEMPLATE_URI_MAX = 8192 };

bool template_is(const char *uri); /* has a variable */
/* The variables as an object of strings, or NULL when the uri does not match. */
json_t *template_match(const char *pattern, const char *uri);
/* The uri from which template_match makes just these values; NULL: there is none (a value is
 * missing, empty, has a slash where none may be…). The caller frees. */
char *template_expand(const char *pattern, const json_t *values);
