#include "init/outbox.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "pipe/message.h"

static uint8_t whole[FRAME_HEADER + FRAME_DATA_MAX]; /* header and payload leave in one write */

static void write_whole(size_t payload_size, enum frame_type type, uint32_t channel, uint8_t stream)
{
    struct frame f = {.type = type, .stream = stream, .channel = channel, .size = payload_size};

    frame_write_header(whole, &f);
    if (fd_write_all(1, whole, FRAME_HEADER + payload_size) < 0)
        _exit(0); /* the server is gone; pid 1 takes everything with it */
}

void outbox_send(enum frame_type type, uint32_t channel, uint8_t stream, const void *payload,
                 size_t size)
{
    if (size > FRAME_DATA_MAX)
        abort();
    if (size > 0)
        memcpy(whole + FRAME_HEADER, payload, size);
    write_whole(size, type, channel, stream);
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
    ssize_t n = read(from_fd, whole + FRAME_HEADER, most < FRAME_DATA_MAX ? most : FRAME_DATA_MAX);

    if (n > 0)
        write_whole((size_t)n, FRAME_DATA, channel, stream);
    return n;
}
