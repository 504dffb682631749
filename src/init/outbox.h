/* outbox - frames from init to the server, on stdout, blocking.
 *
 * What one turn of init has to say leaves in one write, at its end: each write wakes the server,
 * and how a program ended is three frames. So nothing waits for long between a frame and
 * outbox_flush.
 *
 * Blocking is right: credit bounds what is under way, and the server always reads. When it does not
 * because it is gone, the write fails, and with init everything in the sandbox ends. */
#pragma once

#include "base/err.h"
#include "pipe/frame.h"

void outbox_send(enum frame_type type, uint32_t channel, uint8_t stream, const void *payload,
                 size_t size);
void outbox_flush(void); /* before anything that may wait */
void outbox_send_error(uint32_t channel, const struct err *e);
void outbox_send_credit(uint32_t channel, uint8_t stream, uint32_t bytes);

/* Moves what a descriptor has, at most `most` bytes of it, into one DATA frame: as read(2) returns,
 * and with EAGAIN as -1. */
long outbox_relay(int from_fd, uint32_t channel, uint8_t stream, size_t most);
