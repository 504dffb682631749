/* inside - what a sandbox looks like to a program in it, and whether that shows its walls.
 *
 * Facts are lines `name: value`, as in /proc/self/status. A script prints them inside; the same
 * facts of this process are the other half: a namespace is one's own when it is not ours. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

extern const char inside_script[]; /* for sh */

int inside_own_facts(struct buf *ret, struct err *e); /* those that are compared */

/* Whether the facts show the wall of that name: 1; 0: they cannot tell; -1 and one sentence: it is
 * not there. */
int inside_shows(const char *wall, const char *facts, const char *own_facts, struct err *e);
