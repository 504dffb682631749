/* package_name - which texts are names of npm packages: "name" or "@scope/name", of letters (old
 * packages have capitals), digits and "-._~", at most 214 bytes.
 *
 * Such a name may stand in a URL, in a path, and among the words of a program, since it begins with
 * no hyphen: there it would be an option. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { PACKAGE_NAME_MAX = 214 }; /* npm's own limit */

bool package_name_is_one(const char *text, size_t size);

/* Whether it can stand behind a scope; tags of versions are written in the same way. */
bool package_name_is_part(const char *text, size_t size);
