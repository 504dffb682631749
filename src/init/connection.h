/* connection - one TCP connection of init's, carried as a channel: bytes both ways, with credit.
 *
 * Who made it (egress.h: code inside; dial.h: the server) keeps it in a table of its own. It holds
 * at most its window, and only while the code's side is slow. Whatever ends it frees its place. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "pipe/frame.h"

enum { CONNECTION_CREDIT_STEP = WINDOW_CONNECTION / 2 }; /* less is not worth a frame */

struct connection {
    uint32_t   id; /* 0: the place is free */
    int        fd;
    struct buf in;       /* what the code has not taken yet */
    uint32_t   owed;     /* bytes the code took for which the server has no credit yet */
    uint32_t   credit;   /* bytes the server is ready to take */
    bool       in_ended; /* END came */
    bool       in_shut;  /* and was passed on */
    bool       out_ended;
};

void connection_open(struct connection *c, uint32_t id, int fd); /* takes fd, non-blocking */
void connection_close(struct connection *c);

/* A frame of the server on its channel. -1: it broke the protocol and init must end. */
int connection_handle(struct connection *c, const struct frame *f, struct err *e);

/* What to wait for, and what came of it. A free place waits for nothing. */
struct pollfd connection_poll(const struct connection *c);
void          connection_ready(struct connection *c, short events);
