#include "jail/report.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"

static int too_big(void)
{
    errno = EMSGSIZE;
    return -1;
}

static int send_frame(int fd, enum frame_type type, uint32_t channel, const struct buf *payload)
{
    struct frame f = {
        .type = type, .channel = channel, .payload = payload->data, .size = payload->size};
    autobuf struct buf b;

    buf_init(&b, FRAME_HEADER + FRAME_MAX);
    if (frame_add(&b, &f) < 0)
        return too_big();
    return fd_write_all(fd, b.data, b.size);
}

int report_error(int fd, uint32_t channel, const struct err *e)
{
    struct message_error m = {.sys = e->sys, .text = e->msg};
    autobuf struct buf   payload;

    buf_init(&payload, 1024);
    if (message_pack_error(&payload, &m) < 0)
        return too_big();
    return send_frame(fd, FRAME_ERROR, channel, &payload);
}

int report_group_ended(int fd, uint32_t group, const struct message_group_ended *m)
{
    autobuf struct buf payload;

    buf_init(&payload, 64);
    if (message_pack_group_ended(&payload, m) < 0)
        return too_big();
    return send_frame(fd, FRAME_GROUP_ENDED, group, &payload);
}

int report_attached(int fd, uint32_t channel)
{
    return send_frame(fd, FRAME_ATTACHED, channel, &(struct buf){0});
}

int report_walls(int fd, const json_t *walls)
{
    autofree char     *text = json_dumps(walls, JSON_COMPACT);
    autobuf struct buf payload;

    buf_init(&payload, FRAME_MAX);
    if (!text || buf_add(&payload, text, strlen(text)) < 0)
        return too_big();
    return send_frame(fd, FRAME_WALLS, 0, &payload);
}
