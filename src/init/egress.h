/* egress - connections and name lookups that code in the sandbox starts, carried to the server.
 *
 * The jail's rules bring them to init's doors (jail/redirect.h, pipe/ports.h). Init gives each a
 * channel number of its own and moves bytes: it knows no policy and parses no query. See
 * docs/pipe.md, "Egress". Without egress_open there are no doors, and nothing here ever happens. */
#pragma once

#include <poll.h>
#include <stddef.h>

#include "base/err.h"
#include "pipe/frame.h"

enum {
    EGRESS_CONNECTIONS_MAX = 320, /* what comes then is reset */
    EGRESS_LOOKUPS_MAX = 256,     /* without an answer yet; the oldest is forgotten */
    EGRESS_POLLS_MAX = 4 + EGRESS_CONNECTIONS_MAX,
};

int egress_open(struct err *e);

/* One frame of the server on a channel of init's. -1: it broke the protocol and init must end. */
int egress_handle(const struct frame *f, struct err *e);

/* Fills polls with what to wait for; egress_ready must come next, with the same entries. */
size_t egress_fill_polls(struct pollfd polls[EGRESS_POLLS_MAX]);
void   egress_ready(const struct pollfd *polls);
