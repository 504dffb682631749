/* beneath - opens what lies below a directory that hostile code writes to, and nothing else.
 *
 * The path is walked a component at a time and no link is followed, at any place in it: what is
 * opened lies where its name says. openat2 would do it in one call and even follow links that stay
 * below, but the seccomp filter refuses it to everybody inside, init included, because it cannot
 * see the mode in its argument. `..` and absolute paths are refused; the empty path is the
 * directory itself. */
#pragma once

#include "base/err.h"

/* flags: as openat's, without those that create. A descriptor, close-on-exec, or -1. */
int beneath_open(int root_fd, const char *path, int flags, struct err *e);
