/* link - the server's end of a pipe to init, or of the control socket to the jail: frames in and
 * out.
 *
 * What comes in is checked by the codec before the owner sees it; the first broken frame ends the
 * link. The ops are called from the top of the loop and must not free the link. */
#pragma once

#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "pipe/frame.h"

struct link;

struct link_ops {
    void (*frame)(void *owner, const struct frame *f);
    /* Nothing more will come. e->kind is ERR_NONE at a plain end, else the peer broke the grammar
     * or stopped in mid-frame. Called once. */
    void (*ended)(void *owner, const struct err *e);
};

/* Takes the descriptors. */
struct link *link_new(struct event_base *base, int in_fd, int out_fd, enum peer from,
                      const struct link_ops *ops, void *owner);
void         link_free(struct link *l);

/* Frames are queued without waiting; credit bounds what DATA can pile up. A peer that takes nothing
 * while other frames pile up past the maximum loses its link. */
void link_send(struct link *l, enum frame_type type, uint32_t channel, uint8_t stream,
               const void *payload, size_t size);
