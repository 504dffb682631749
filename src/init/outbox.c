#include "init/outbox.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "pipe/message.h"

/* Room for the largest frame behind many small ones. */
enum { SMALL_FRAMES = 4096 };

static uint8_t queue[SMALL_FRAMES + FRAME_HEADER + FRAME_DATA_MAX];
static size_t  queued;

void outbox_flush(void)
{
    if (queued > 0 && fd_write_all(1, queue, queued) < 0)
        _exit(0); /* the server is gone; pid 1 takes everything with it */
    queued = 0;
}

/* Where the payload of the next frame belongs, which has at most `most` bytes. */
static uint8_t *make_room(size_t most)
{
    if (queued + FRAME_HEADER + most > sizeof queue)
        outbox_flush();
    return queue + queued + FRAME_HEADER;
}

/* The payload is in its place. */
static void add_frame(size_t size, enum frame_type type, uint32_t channel, uint8_t stream)
{
    struct frame f = {.type = type, .stream = stream, .channel = channel, .size = size};

    frame_write_header(queue + queued, &f);
    queued += FRAME_HEADER + size;
}

void outbox_send(enum frame_type type, uint32_t channel, uint8_t stream, const void *payload,
                 size_t size)
{
    if (size > FRAME_DATA_MAX)
        abort();
    uint8_t *to = make_room(size);
    if (size > 0)
        memcpy(to, payload, size);
    add_frame(size, type, channel, stream);
}

void outbox_send_error(uint32_t channel, const struct err *e)
{
    struct message_error m = {.sys = e->sys, .text = e->msg};
    autobuf struct buf   b;

    buf_init(&b, 1024);
    if (message_pack_error(&b, &m) == 0)
        outbox_send(FRAME_ERROR, channel, 0, b.data, b.size);
}

void outbox_send_credit(uint32_t channel, uint8_t stream, uint32_t bytes)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    if (message_pack_u32(&b, bytes) == 0)
        outbox_send(FRAME_CREDIT, channel, stream, b.data, b.size);
}

long outbox_relay(int from_fd, uint32_t channel, uint8_t stream, size_t most)
{
    size_t   size = most < FRAME_DATA_MAX ? most : FRAME_DATA_MAX;
    uint8_t *to = make_room(size);
    ssize_t  n = read(from_fd, to, size);

    if (n > 0)
        add_frame((size_t)n, FRAME_DATA, channel, stream);
    return n;
}
