/* scan - what lies in a directory of the workspace, told to the server.
 *
 * SCAN names it, and how many entries and levels are wanted. ROWS bring them, the upper levels
 * first; SCANNED ends the channel and tells whether that was all. Links are told, not followed. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "pipe/frame.h"

enum { SCANS_MAX = 4 }; /* at once; each may hold SCAN_QUEUE_MAX */

bool scan_has(uint32_t channel);

/* Frames of the server. -1: it broke the protocol and init must end. */
int scan_open(const struct frame *f, struct err *e);
int scan_handle(const struct frame *f, struct err *e);

/* While one goes on, nobody waits for anything else. */
bool scan_is_busy(void);
void scan_step(void); /* a slice of each, so that a huge tree holds nobody up */
