/* channel - what is open inside the sandbox: processes and files being written.
 *
 * Each has a number that the server gave. A process is over when it was reaped and its two outputs
 * ended; a file when it got its name or failed. Frames for a number that is not (or no longer) open
 * are dropped: they crossed its end on the way. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "pipe/frame.h"

enum { CHANNELS_MAX = 128, CHANNEL_POLLS_MAX = CHANNELS_MAX * 3 };

bool channel_has(uint32_t channel);

/* One frame of the server. -1: it broke the protocol and init must end; everything else that goes
 * wrong is an ERROR frame on that channel. */
int channel_handle(const struct frame *f, struct err *e);

/* Fills polls with what to wait for; channel_ready must come next, with the same entries. */
size_t channel_fill_polls(struct pollfd polls[CHANNEL_POLLS_MAX]);
void   channel_ready(const struct pollfd *polls);

void channel_reap(void); /* after SIGCHLD */

/* The process of that channel has ended when this returns, with all that it started; if it has a
 * leader (world.h). false: a leader was lost meanwhile, and with it everything that ran. */
bool channel_end_group(uint32_t channel);
