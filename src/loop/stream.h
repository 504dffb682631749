/* stream - a pair of descriptors on the loop: bytes in, bytes out, neither without a limit.
 *
 * In: what is read waits in a buffer until `input` takes it; a full buffer stops the reading, the
 * kernel's pipe fills, the writer waits. Out: what cannot be written at once is queued up to a
 * maximum, and stream_write refuses what would pass it; `left` tells what has gone out (or was
 * dropped because nobody takes it any more), so that credit can be given back. What epoll refuses
 * (files, /dev/null) works too: it is always ready.
 *
 * The ops are called from the top of the loop and must not free the stream (see loop/later.h). No
 * deadline: how long silence may last is known only to the owner. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct stream;

struct stream_ops {
    /* There is input, or (once) its end. Take what you can with buf_drop; the rest is offered again
     * with the next bytes, or after stream_offer. */
    void (*input)(void *owner, struct buf *in, bool ended);
    void (*left)(void *owner, size_t bytes);
    void (*broken)(void *owner, int sys); /* output can go nowhere any more, errno says why; once */
};

/* Takes the descriptors (either may be -1, or both the same) and makes them non-blocking. */
struct stream *stream_new(struct event_base *base, int in_fd, int out_fd, size_t in_max,
                          size_t out_max, const struct stream_ops *ops, void *owner);
void           stream_free(struct stream *s);

int    stream_write(struct stream *s, const void *data, size_t size); /* -1: over the maximum */
size_t stream_queued(const struct stream *s);
void   stream_offer(struct stream *s);      /* call `input` again, from the loop */
void   stream_hang_up(struct stream *s);    /* what has come is still told, and then the end */
void   stream_end_output(struct stream *s); /* of two descriptors: the peer reads its end */

/* A standard descriptor that others share: opened anew where that is possible, so that O_NONBLOCK
 * is ours alone and no other program on the same terminal or pipe is surprised. */
int stream_reopen(int fd, int access_mode);
