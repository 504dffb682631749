#include "sandbox/upload.h"

#include <stdbool.h>
#include <stdlib.h>

#include "loop/later.h"
#include "pipe/message.h"

struct upload {
    struct sandbox *sandbox; /* NULL once it is lost */
    uint32_t        id;
    struct later    later;
    const uint8_t  *bytes;
    size_t          size;
    uint32_t        credit;
    bool            end_sent, over;
    struct err      err;
    void (*done)(void *owner, const struct err *e);
    void *owner;
};

static void send_some(struct upload *u)
{
    while (u->size > 0 && u->credit > 0) {
        size_t n = u->size < u->credit ? u->size : u->credit;
        if (n > FRAME_DATA_MAX)
            n = FRAME_DATA_MAX;
        sandbox_send(u->sandbox, FRAME_DATA, u->id, STREAM_IN, u->bytes, n);
        u->bytes += n;
        u->size -= n;
        u->credit -= (uint32_t)n;
    }
    if (u->size == 0 && !u->end_sent) {
        u->end_sent = true;
        sandbox_send(u->sandbox, FRAME_END, u->id, STREAM_IN, NULL, 0);
    }
}

static void step(void *owner)
{
    struct upload *u = owner;

    if (!u->over) {
        send_some(u);
        return;
    }
    u->done(u->owner, &u->err);
    if (u->sandbox)
        sandbox_close_channel(u->sandbox, u->id);
    later_done(&u->later);
    free(u);
}

static void on_frame(void *owner, const struct frame *f)
{
    struct upload *u = owner;
    uint32_t       bytes;

    if (f->type == FRAME_CREDIT && message_unpack_u32(f, &bytes, NULL) == 0 &&
        bytes <= WINDOW_TO_INIT - u->credit) {
        u->credit += bytes;
    } else if (f->type == FRAME_DONE && u->end_sent) {
        u->over = true;
    } else if (f->type == FRAME_ERROR) {
        message_take_error(f, &u->err);
        u->over = true;
    } else {
        sandbox_fail(u->sandbox, ERR_INVALID, "the sandbox sent a frame that fits no file");
    }
    later_ask(&u->later);
}

static void on_lost(void *owner, const struct err *e)
{
    struct upload *u = owner;

    u->sandbox = NULL;
    u->err = *e;
    u->over = true;
    later_ask(&u->later);
}

static const struct channel_ops channel_ops = {on_frame, on_lost};

struct upload *upload_start(struct sandbox *s, const char *path, unsigned mode,
                            const uint8_t *bytes, size_t                          size,
                            void (*done)(void *owner, const struct err *e), void *owner)
{
    struct upload            *u = calloc(1, sizeof *u);
    struct message_write_file m = {.mode = mode, .path = path};
    autobuf struct buf        b;

    if (!u)
        abort();
    *u = (struct upload){.sandbox = s,
                         .bytes = bytes,
                         .size = size,
                         .credit = WINDOW_TO_INIT,
                         .done = done,
                         .owner = owner};
    later_init(&u->later, sandbox_base(s), step, u);
    u->id = sandbox_open_channel(s, &channel_ops, u);
    buf_init(&b, 8192);
    if (message_pack_write_file(&b, &m) < 0) {
        err_set(&u->err, ERR_INVALID, "the path of the file is too long");
        u->over = true;
        later_ask(&u->later);
        return u;
    }
    sandbox_send(s, FRAME_WRITE_FILE, u->id, 0, b.data, b.size);
    send_some(u);
    return u;
}
