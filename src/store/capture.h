/* capture - run a program to its end and read what it prints, within a time. Blocks; stdin is
 * empty, stderr is ours. */
#pragma once

#include "base/err.h"

struct capture {
    int  status;       /* exit status, or 128 + signal */
    char output[4097]; /* its first line; more than fits is cut */
    char said[4097];   /* if it ran quietly: what it said on stderr, as much as fits */
};

/* timeout_ms -1: the program bounds itself. ERR_TIMEOUT: it was killed. */
int capture_run(const char *path, const char *const *argv, int timeout_ms, struct capture *ret,
                struct err *e);
/* The same, but stderr is not ours: what it says there is kept. */
int capture_run_quietly(const char *path, const char *const *argv, int timeout_ms,
                        struct capture *ret, struct err *e);
