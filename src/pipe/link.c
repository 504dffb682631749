#include "pipe/link.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loop/stream.h"

enum { QUEUE_MAX = 16 << 20, QUEUE_MARK = 4 << 20 };

struct link {
    struct stream         *stream;
    enum peer              from;
    bool                   ended;
    bool                   was_full;   /* somebody was told so */
    int                    broken_sys; /* why the peer does not hear us any more, or 0 */
    const struct link_ops *ops;
    void                  *owner;
};

static void end(struct link *l, const struct err *e)
{
    if (l->ended)
        return;
    l->ended = true;
    l->ops->ended(l->owner, e);
}

static void on_input(void *owner, struct buf *in, bool ended)
{
    struct link *l = owner;
    struct frame f;
    struct err   e = {0};
    size_t       done = 0;
    long         n = 0;

    while (!l->ended && (n = frame_parse(in->data + done, in->size - done, l->from, &f, &e)) > 0) {
        done += (size_t)n;
        l->ops->frame(l->owner, &f);
    }
    buf_drop(in, l->ended || n < 0 ? in->size : done);
    if (n >= 0 && ended && in->size > 0)
        err_set(&e, ERR_INVALID, "the pipe ended in the middle of a frame");
    else if (n >= 0 && ended && l->broken_sys)
        err_set(&e, ERR_UNAVAILABLE, "the pipe broke: %s", strerror(l->broken_sys));
    if (n < 0 || ended)
        end(l, &e);
}

static void on_left(void *owner, size_t bytes)
{
    struct link *l = owner;

    (void)bytes;
    if (!l->was_full || stream_queued(l->stream) > QUEUE_MARK / 2)
        return;
    l->was_full = false;
    if (l->ops->drained && !l->ended)
        l->ops->drained(l->owner);
}

/* Who cannot be told anything is not waited for. One that is gone (EPIPE) may have left its last
 * words, which say more; else it does not even know. */
static void on_broken(void *owner, int sys)
{
    struct link *l = owner;

    l->broken_sys = sys == EPIPE || sys == ECONNRESET ? 0 : sys;
    stream_hang_up(l->stream);
}

static const struct stream_ops ops = {.input = on_input, .left = on_left, .broken = on_broken};

struct link *link_new(struct event_base *base, int in_fd, int out_fd, enum peer from,
                      const struct link_ops *link_ops, void *owner)
{
    struct link *l = calloc(1, sizeof *l);

    if (!l)
        abort();
    *l = (struct link){.from = from, .ops = link_ops, .owner = owner};
    l->stream = stream_new(base, in_fd, out_fd, FRAME_HEADER + FRAME_MAX, QUEUE_MAX, &ops, l);
    return l;
}

void link_free(struct link *l)
{
    if (!l)
        return;
    stream_free(l->stream);
    free(l);
}

void link_close(struct link *l)
{
    l->ended = true;
    stream_end_output(l->stream);
}

bool link_has_room(const struct link *l)
{
    return stream_queued(l->stream) <= QUEUE_MARK;
}

void link_send(struct link *l, enum frame_type type, uint32_t channel, uint8_t stream,
               const void *payload, size_t size)
{
    struct frame f = {
        .type = type, .channel = channel, .stream = stream, .payload = payload, .size = size};
    autobuf struct buf whole; /* header and payload in one write */
    struct err         e = {0};

    buf_init(&whole, FRAME_HEADER + FRAME_MAX);
    if (frame_add(&whole, &f) < 0 || stream_write(l->stream, whole.data, whole.size) < 0) {
        err_set(&e, ERR_LIMIT, "the sandbox takes no more frames");
        end(l, &e);
    }
    l->was_full |= !link_has_room(l);
}
