/* pack - a directory, or some of its files, as a stream of bytes, for sandboxes that cannot be
 * shown it: engine/unpack.cjs makes it anew inside.
 *
 * Records: u8 kind ('d' directory, 'f' file, 'l' link, 'x' there is none any more, '.' the end),
 * u32 mode, u32 size of the name, u64 size of the content, name, content (of a link its text).
 * Little-endian. Names begin with a slash, but the directory's own, which is empty and comes first.
 */
#pragma once

#include "base/err.h"

int pack_tree(const char *dir, int to_fd, struct err *e);

/* Only these: relative paths from a descriptor, each ended by NUL. Links on the way to them are not
 * followed. What cannot be read by us is as if it were not there, as are devices and the like. */
int pack_some(const char *dir, int list_fd, int to_fd, struct err *e);
