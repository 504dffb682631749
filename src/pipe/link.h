/* link - the server's end of a pipe to init, or of the control socket to the jail: frames in and
 * out.
 *
 * What comes in is checked by the codec before the owner sees it; the first broken frame ends the
 * link. The ops are called from the top of the loop and must not free the link. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "pipe/frame.h"

struct link;

struct link_ops {
    void (*frame)(void *owner, const struct frame *f);
    /* Nothing more will come. e->kind is ERR_NONE at a plain end, else the peer broke the grammar,
     * stopped in mid-frame, or cannot be written to. Called once. */
    void (*ended)(void *owner, const struct err *e);
    void (*drained)(void *owner); /* there is room again; NULL: nobody asks */
};

/* Takes the descriptors. */
struct link *link_new(struct event_base *base, int in_fd, int out_fd, enum peer from,
                      const struct link_ops *ops, void *owner);
void         link_free(struct link *l);
/* The peer reads its end, and nothing that it still says is told: but it is taken, for who cannot
 * speak fails where it would clean up. */
void link_close(struct link *l);
bool link_has_room(const struct link *l);

/* Frames are queued without waiting. Who sends DATA of many streams asks for room first: their
 * windows together are more than the queue. A peer that takes nothing while frames pile up past the
 * maximum loses its link. */
void link_send(struct link *l, enum frame_type type, uint32_t channel, uint8_t stream,
               const void *payload, size_t size);
