/* box_trail - what the audit log is told of a box: that somebody has it, and its end. All of it is
 * nothing without a trail. */
#pragma once

#include "box/box.h"
#include "sandbox/telling.h"

struct trail        *box_trail(const struct box *b);
struct trail_subject box_subject(const struct box *b); /* with the call that has its turn */

void box_tell_made(const struct box *b, const char *call); /* `call` may be NULL */
void box_tell_stopped(const struct box *b);
