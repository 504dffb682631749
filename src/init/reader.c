#include "init/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "init/beneath.h"
#include "init/outbox.h"
#include "init/world.h"
#include "pipe/message.h"

static struct reading {
    uint32_t id; /* 0: the place is free */
    int      fd;
    uint64_t left;   /* bytes that are still wanted: a file may grow for ever */
    uint32_t credit; /* bytes the server is ready to take */
} readings[READERS_MAX];

static struct reading *find_reading(uint32_t id)
{
    for (size_t i = 0; i < READERS_MAX; i++)
        if (readings[i].id == id)
            return &readings[i];
    return NULL;
}

bool reader_has(uint32_t channel)
{
    return channel != 0 && find_reading(channel);
}

static void close_reading(struct reading *r)
{
    fd_close(&r->fd);
    r->id = 0;
}

/* O_NONBLOCK: a FIFO must not hold init up. What was opened is looked at, not its name. */
static int open_file(const char *path, uint64_t *ret_size, struct err *e)
{
    autofd int  root = world_open_workspace(e), fd = -1;
    struct stat s;

    TRY(root);
    fd = beneath_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, e);
    TRY(fd);
    if (fstat(fd, &s) < 0)
        return err_sys(e, "open %.120s", path);
    if (!S_ISREG(s.st_mode)) {
        err_set(e, ERR_INVALID, "open %.120s: it is not a regular file", path);
        e->sys = S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
        return -1;
    }
    *ret_size = (uint64_t)s.st_size;
    return take_fd(&fd);
}

int reader_open(const struct frame *f, struct err *e)
{
    struct message_read_file m;
    struct message_opened    opened = {0};
    struct reading          *r = find_reading(0);
    struct err               failure = {0};
    autobuf struct buf       b;
    int                      fd = -1;

    buf_init(&b, 16);
    TRY(message_unpack_read_file(f, &m, e));
    if (!r)
        err_set(&failure, ERR_LIMIT, "%d files are being read already", READERS_MAX);
    else
        fd = open_file(m.path, &opened.size, &failure);
    if (fd < 0 || message_pack_opened(&b, &opened) < 0) {
        outbox_send_error(f->channel, &failure);
        return 0;
    }
    *r = (struct reading){f->channel, fd, m.most, WINDOW_FROM_INIT};
    outbox_send(FRAME_OPENED, f->channel, 0, b.data, b.size);
    return 0;
}

int reader_handle(const struct frame *f, struct err *e)
{
    struct reading *r = find_reading(f->channel);
    uint32_t        bytes;

    if (f->type == FRAME_RESET) {
        close_reading(r);
        return 0;
    }
    if (f->type != FRAME_CREDIT || f->stream != STREAM_OUT)
        return err_set(e, ERR_INVALID, "%s frame on channel %u, which is a file that is read",
                       frame_type_name(f->type), r->id);
    TRY(message_unpack_u32(f, &bytes, e));
    if (bytes > WINDOW_FROM_INIT - r->credit)
        return err_set(e, ERR_INVALID, "credit past the window of channel %u", r->id);
    r->credit += bytes;
    return 0;
}

/* ---- the step ---- */

static bool can_go_on(const struct reading *r)
{
    return r->id && (r->credit > 0 || r->left == 0);
}

static void read_some(struct reading *r)
{
    size_t     wanted = r->left < r->credit ? (size_t)r->left : r->credit;
    long       n = wanted > 0 ? outbox_relay(r->fd, r->id, STREAM_OUT, wanted) : 0;
    struct err failure = {0};

    if (n > 0) {
        r->left -= (uint64_t)n;
        r->credit -= (uint32_t)n;
    } else if (n == 0) {
        outbox_send(FRAME_END, r->id, STREAM_OUT, NULL, 0);
        close_reading(r);
    } else if (errno != EINTR && errno != EAGAIN) {
        err_sys(&failure, "read a file");
        outbox_send_error(r->id, &failure);
        close_reading(r);
    }
}

bool reader_is_busy(void)
{
    for (size_t i = 0; i < READERS_MAX; i++)
        if (can_go_on(&readings[i]))
            return true;
    return false;
}

void reader_step(void)
{
    for (size_t i = 0; i < READERS_MAX; i++)
        if (can_go_on(&readings[i]))
            read_some(&readings[i]);
}
