/* template - URI templates as far as resources need them: {name} is one path segment, {+name} the
 * rest with its slashes. */
#pragma once

#include <stdbool.h>

#include "base/json.h"

bool template_is(const char *uri); /* has a variable */
/* The variables as an object of strings, or NULL when the uri does not match. */
json_t *template_match(const char *pattern, const char *uri);
