/* progress - a download shown on stderr: a line that is redrawn and then wiped on a terminal, one
 * plain line elsewhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *name, *version; /* borrowed */
    int         shown;          /* percent on the screen; -1: nothing yet */
};

void progress_start(struct progress *p, const char *name, const char *version);
void progress_update(void *progress, int64_t bytes, int64_t total_bytes);
void progress_end(struct progress *p);
