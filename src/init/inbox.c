#include "init/inbox.h"

#include <errno.h>
#include <unistd.h>

#include "init/channel.h"
#include "init/dial.h"
#include "init/egress.h"
#include "init/group.h"
#include "init/outbox.h"
#include "init/reader.h"
#include "init/scan.h"
#include "pipe/message.h"

enum { READ_SIZE = 1 << 17 };

void inbox_init(struct inbox *in)
{
    buf_init(&in->bytes, FRAME_HEADER + FRAME_MAX + READ_SIZE);
    in->greeted = false;
}

void inbox_done(struct inbox *in)
{
    buf_done(&in->bytes);
}

void inbox_send_hello(void)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    if (message_pack_hello(&b) == 0)
        outbox_send(FRAME_HELLO, 0, 0, b.data, b.size);
}

/* What a channel of the server's may be, beside a process or a file that is written. */
static const struct kind {
    enum frame_type opened_by;
    bool (*has)(uint32_t channel);
    int (*open)(const struct frame *f, struct err *e);
    int (*handle)(const struct frame *f, struct err *e);
} kinds[] = {
    {FRAME_DIAL, dial_has, dial_open, dial_handle},
    {FRAME_READ_FILE, reader_has, reader_open, reader_handle},
    {FRAME_SCAN, scan_has, scan_open, scan_handle},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int handle_of_server(const struct frame *f, struct err *e)
{
    if (group_takes(f->type)) {
        group_handle(f);
        return 0;
    }
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].has(f->channel)) /* whatever opens a channel fits none that is open */
            return kinds[i].handle(f, e);
    for (size_t i = 0; i < KINDS; i++) {
        if (kinds[i].opened_by != f->type)
            continue;
        if (f->channel == 0 || channel_has(f->channel))
            return err_set(e, ERR_INVALID, "channel %u cannot be opened", f->channel);
        return kinds[i].open(f, e);
    }
    return channel_handle(f, e);
}

static int handle(struct inbox *in, const struct frame *f, struct err *e)
{
    if (in->greeted && f->type != FRAME_HELLO)
        return f->channel & CHANNEL_OF_INIT ? egress_handle(f, e) : handle_of_server(f, e);
    if (in->greeted || f->type != FRAME_HELLO)
        return err_set(e, ERR_INVALID, "%s frame where hello belongs, or hello twice",
                       frame_type_name(f->type));
    in->greeted = true;
    return message_check_hello(f, e);
}

static int handle_all(struct inbox *in, struct err *e)
{
    struct frame f;
    size_t       done = 0;
    long         n;

    while ((n = frame_parse(in->bytes.data + done, in->bytes.size - done, PEER_SERVER, &f, e)) >
           0) {
        done += (size_t)n;
        TRY(handle(in, &f, e));
    }
    TRY(n);
    buf_drop(&in->bytes, done);
    return 1;
}

int inbox_read(struct inbox *in, int fd, struct err *e)
{
    uint8_t *to = buf_reserve(&in->bytes, READ_SIZE);
    ssize_t  n;

    if (!to)
        return err_set(e, ERR_LIMIT,
                       "frames pile up"); /* cannot be: a frame fits, see inbox_init */
    n = read(fd, to, READ_SIZE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 1;
    if (n <= 0)
        return 0;
    in->bytes.size += (size_t)n;
    return handle_all(in, e);
}
