/* types_refs - which other files a TypeScript file names: imports and re-exports of relative paths
 * and of the package's own names ("#name"), import("…") and require("…") of them, and reference
 * comments with a path, or with types at one. Pure.
 *
 * It reads words, strings and comments, no grammar: what stands in a comment or in a string is not
 * taken for an import, and a name too many would only be looked for in vain. */
#pragma once

#include <stddef.h>

enum { TYPES_REF_MAX = 1024 };

/* `path` is relative to the file's directory ("./a", "../b", "c.d.ts"), or begins with "#". */
typedef void types_refs_take(void *owner, const char *path);

void types_refs(const char *text, size_t size, types_refs_take *take, void *owner);
