/* reason - why another program failed, of what it said on stderr: one line, to stand in a sentence
 * of ours. All but printable ASCII is a blank, for a terminal would obey it; what does not fit is
 * cut between words, and "..." says so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { REASON_MAX = 320 }; /* with a name and a verb before it, it fits into an err */

/* The first line that is no warning, nor of a log if there is another: by it clients of container
 * daemons tell why; where to find help comes behind. False: there is none, and *ret is "". */
bool reason_find(const char *text, char *ret, size_t size);

/* The line that begins here. */
void reason_take(const char *line, char *ret, size_t size);
