/* reader - files of the workspace on their way to the server.
 *
 * READ_FILE names one; OPENED tells its size, DATA brings its beginning within credit, END closes
 * the channel. Only regular files: whatever else code put under that name is an ERROR. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "pipe/frame.h"

enum { READERS_MAX = 16 };

bool reader_has(uint32_t channel);

/* Frames of the server. -1: it broke the protocol and init must end. */
int reader_open(const struct frame *f, struct err *e);
int reader_handle(const struct frame *f, struct err *e);

/* A file is always ready: while one can go on, nobody waits for anything else. */
bool reader_is_busy(void);
void reader_step(void); /* a little of each */
