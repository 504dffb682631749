/* group - what a jail does for the processes of a run, done by init where there is none (an engine
 * that is not native).
 *
 * The server's frames about groups come through the pipe then. A group is a program and what it
 * started, below a leader (leader.h). */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "pipe/frame.h"

void group_enable(void); /* from now on, such frames are taken */
bool group_takes(enum frame_type type);
void group_handle(const struct frame *f);
