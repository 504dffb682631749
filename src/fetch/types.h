/* types - what TypeScript knows of one npm package, as JSON: from its own tarball, else from
 * @types/…; with the user's configuration, from the registry of its scope.
 *
 * The tarballs stay in downloads/ under their sha512, so the next one who asks downloads nothing.
 * They are read, never unpacked: a first time for names and package.json, a second time for texts.
 *
 *   {"hasTypes": true, "version": …, "typesPackage": … (if it is @types/…), "types": …,
 *    "leftOut": […] (if any)}
 *   {"hasTypes": false, "version": …, "reason": one sentence} */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* `range` may be a tag, or npm:name@range. At most max_bytes of types. */
int types_fetch(const char *name, const char *range, size_t max_bytes, struct buf *ret,
                struct err *e);
