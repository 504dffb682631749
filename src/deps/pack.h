/* pack - a directory as a stream of bytes, for sandboxes that cannot be shown it: engine/unpack.cjs
 * makes it anew inside.
 *
 * Records: u8 kind ('d' directory, 'f' file, 'l' link, '.' the end), u32 mode, u32 size of the
 * name, u64 size of the content, name, content (of a link its text). Little-endian. Names begin
 * with a slash, but the directory's own, which is empty and comes first. */
#pragma once

#include "base/err.h"

int pack_tree(const char *dir, int to_fd, struct err *e);
