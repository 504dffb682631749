/* dial - connections that the server makes to ports inside the sandbox.
 *
 * DIAL names a port; init connects to it on 127.0.0.1, and on ::1 when that is refused. STARTED
 * says that somebody accepts there, ERROR that nobody does. Then it is a connection like those that
 * go out (connection.h), on a channel whose number the server gave. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "pipe/frame.h"

enum { DIALS_MAX = 128 }; /* of their windows 32 MiB; one more is an ERROR */

bool dial_has(uint32_t channel);

/* Frames of the server. -1: it broke the protocol and init must end. */
int dial_open(const struct frame *f, struct err *e);
int dial_handle(const struct frame *f, struct err *e);

/* Fills polls with what to wait for; dial_ready must come next, with the same entries. */
size_t dial_fill_polls(struct pollfd polls[DIALS_MAX]);
void   dial_ready(const struct pollfd *polls);
