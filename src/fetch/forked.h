/* forked - a process of jerboa-fetch that is forked and never executes anything. It ends with its
 * parent. */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* 0 in the child. Its output is our input, which main.c made /dev/null: the answer of the program
 * is not its to give. */
pid_t forked_start(const char *role, struct err *e);

/* Waits for its end. -1 and a sentence when that was not of its own will. */
int forked_reap(pid_t pid, const char *role, struct err *e);
