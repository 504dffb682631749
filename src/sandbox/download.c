#include "sandbox/download.h"

#include <stdbool.h>
#include <stdlib.h>

#include "loop/deadline.h"
#include "loop/later.h"
#include "pipe/message.h"

enum { SILENCE_MS = 30000, WORTH_A_FRAME = WINDOW_FROM_INIT / 4 };

struct download {
    struct sandbox *sandbox; /* NULL once it is lost */
    uint32_t        id;
    struct later    later;
    struct deadline deadline; /* of silence */
    struct buf      bytes;    /* stays empty where pieces are taken */
    size_t          size;     /* that came */
    uint64_t        told;     /* its size when it was opened */
    uint32_t        consumed; /* bytes for which init has no credit yet */
    bool            opened, over;
    bool            closed; /* by init: nothing more comes, and nothing is to be reset */
    struct err      err;
    bool (*piece)(void *owner, const uint8_t *bytes, size_t size); /* or NULL */
    void (*done)(void *owner, const struct err *e, const uint8_t *bytes, size_t size,
                 uint64_t whole);
    void *owner;
};

static void download_free(struct download *d)
{
    if (d->sandbox && !d->closed)
        sandbox_send(d->sandbox, FRAME_RESET, d->id, 0, NULL, 0);
    if (d->sandbox)
        sandbox_close_channel(d->sandbox, d->id);
    deadline_done(&d->deadline);
    later_done(&d->later);
    buf_done(&d->bytes);
    free(d);
}

/* One that grew or shrank since it was opened has the size that was seen last. */
static uint64_t whole_size(const struct download *d)
{
    bool was_cut = d->size == d->bytes.max && d->told > d->size;

    return was_cut ? d->told : d->size;
}

static void step(void *owner)
{
    struct download *d = owner;

    if (!d->over)
        return;
    if (d->err.kind)
        d->done(d->owner, &d->err, NULL, 0, 0);
    else
        d->done(d->owner, &d->err, d->bytes.data, d->size, whole_size(d));
    download_free(d);
}

/* ---- facts ---- */

static void give_credit(struct download *d, size_t bytes)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    d->consumed += (uint32_t)bytes;
    if (d->consumed < WORTH_A_FRAME)
        return;
    message_pack_u32(&b, d->consumed);
    sandbox_send(d->sandbox, FRAME_CREDIT, d->id, STREAM_OUT, b.data, b.size);
    d->consumed = 0;
}

static int take_opened(struct download *d, const struct frame *f)
{
    struct message_opened m;

    if (d->opened)
        return -1;
    TRY(message_unpack_opened(f, &m, NULL));
    d->opened = true;
    d->told = m.size;
    return 0;
}

static int take_data(struct download *d, const struct frame *f)
{
    if (!d->opened || f->stream != STREAM_OUT || f->size > WINDOW_FROM_INIT - d->consumed)
        return -1;
    if (f->size > d->bytes.max - d->size)
        return -1; /* more than was asked for */
    d->size += f->size;
    if (!d->piece)
        buf_add(&d->bytes, f->payload, f->size);
    else if (!d->piece(d->owner, f->payload, f->size))
        err_set(&d->err, ERR_CANCELLED, "the file is not wanted any more");
    d->over = d->err.kind != ERR_NONE;
    give_credit(d, f->size);
    return 0;
}

static int take(struct download *d, const struct frame *f)
{
    switch (f->type) {
    case FRAME_OPENED:
        return take_opened(d, f);
    case FRAME_DATA:
        return take_data(d, f);
    case FRAME_END:
        d->over = d->closed = true;
        return d->opened && f->stream == STREAM_OUT ? 0 : -1;
    case FRAME_ERROR:
        message_take_path_error(f, &d->err);
        d->over = d->closed = true;
        return 0;
    default:
        return -1;
    }
}

static void on_frame(void *owner, const struct frame *f)
{
    struct download *d = owner;

    if (d->over)
        return; /* its end, or ours, came first */
    deadline_set(&d->deadline, SILENCE_MS);
    if (take(d, f) < 0) {
        d->over = false; /* the sandbox's end ends it */
        sandbox_fail(d->sandbox, ERR_INVALID, "the sandbox sent a frame that fits no file");
    }
    later_ask(&d->later);
}

static void fail(struct download *d, const struct err *e)
{
    d->err = *e;
    d->over = true;
    later_ask(&d->later);
}

static void on_lost(void *owner, const struct err *e)
{
    struct download *d = owner;

    d->sandbox = NULL;
    if (!d->over)
        fail(d, e);
}

static void on_deadline(void *owner)
{
    struct err e = {0};

    err_set(&e, ERR_TIMEOUT, "the file did not come for %d seconds", SILENCE_MS / 1000);
    fail(owner, &e);
}

static const struct channel_ops channel_ops = {on_frame, on_lost, NULL};

struct download *
download_start_pieces(struct sandbox *s, const char *path, size_t max,
                      bool (*piece)(void *owner, const uint8_t *bytes, size_t size),
                      void (*done)(void *owner, const struct err *e, const uint8_t *bytes,
                                   size_t size, uint64_t whole),
                      void *owner)
{
    struct download         *d = calloc(1, sizeof *d);
    struct message_read_file m = {.most = max, .path = path};
    autobuf struct buf       b;

    if (!d)
        abort();
    *d = (struct download){.sandbox = s, .piece = piece, .done = done, .owner = owner};
    buf_init(&d->bytes, max);
    later_init(&d->later, sandbox_base(s), step, d);
    deadline_init(&d->deadline, sandbox_base(s), on_deadline, d);
    d->id = sandbox_open_channel(s, &channel_ops, d);
    buf_init(&b, 8192);
    if (message_pack_read_file(&b, &m) < 0) {
        struct err e = {0};
        err_set(&e, ERR_INVALID, "%.120s is not the path of a file in the workspace", path);
        d->closed = true;
        fail(d, &e);
        return d;
    }
    deadline_set(&d->deadline, SILENCE_MS);
    sandbox_send(s, FRAME_READ_FILE, d->id, 0, b.data, b.size);
    return d;
}

struct download *download_start(struct sandbox *s, const char *path, size_t max,
                                void (*done)(void *owner, const struct err *e, const uint8_t *bytes,
                                             size_t size, uint64_t whole),
                                void *owner)
{
    return download_start_pieces(s, path, max, NULL, done, owner);
}

void download_cancel(struct download *d)
{
    download_free(d);
}
