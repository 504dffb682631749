/* Theory of operation. The payloads of ROWS are kept as they came, one behind the other, after a
 * look at each row; the table that `done` gets is made at the end and points into them. */
#include "sandbox/listing.h"

#include <stdlib.h>

#include "loop/deadline.h"
#include "loop/later.h"

struct listing {
    struct sandbox *sandbox; /* NULL once it is lost */
    uint32_t        id;
    struct later    later;
    struct deadline deadline;
    struct buf      bytes;
    uint32_t        n, most; /* rows */
    bool            cut, over;
    bool            closed; /* by init: nothing more comes, and nothing is to be reset */
    struct err      err;
    void (*done)(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                 bool cut);
    void *owner;
};

static void listing_free(struct listing *l)
{
    if (l->sandbox && !l->closed)
        sandbox_send(l->sandbox, FRAME_RESET, l->id, 0, NULL, 0);
    if (l->sandbox)
        sandbox_close_channel(l->sandbox, l->id);
    deadline_done(&l->deadline);
    later_done(&l->later);
    buf_done(&l->bytes);
    free(l);
}

static void step(void *owner)
{
    struct listing     *l = owner;
    struct frame        all = {.type = FRAME_ROWS, .payload = l->bytes.data, .size = l->bytes.size};
    struct listing_row *rows;

    if (!l->over)
        return;
    rows = calloc((size_t)l->n + 1, sizeof *rows);
    if (!rows)
        abort();
    for (uint32_t i = 0; i < l->n; i++)
        message_next_row(&all, &rows[i], NULL); /* each was looked at when it came */
    l->done(l->owner, &l->err, rows, l->err.kind ? 0 : l->n, l->cut);
    free(rows);
    listing_free(l);
}

/* ---- facts ---- */

static int take_rows(struct listing *l, const struct frame *f)
{
    struct frame       rest = *f;
    struct listing_row row;
    int                r;

    while ((r = message_next_row(&rest, &row, NULL)) > 0)
        if (l->n++ == l->most)
            return -1;
    TRY(r);
    return buf_add(&l->bytes, f->payload, f->size);
}

static int take(struct listing *l, const struct frame *f)
{
    struct message_scanned m;

    switch (f->type) {
    case FRAME_ROWS:
        return take_rows(l, f);
    case FRAME_SCANNED:
        TRY(message_unpack_scanned(f, &m, NULL));
        l->cut = m.cut;
        l->over = l->closed = true;
        return 0;
    case FRAME_ERROR:
        message_take_path_error(f, &l->err);
        l->over = l->closed = true;
        return 0;
    default:
        return -1;
    }
}

static void on_frame(void *owner, const struct frame *f)
{
    struct listing *l = owner;

    if (l->over)
        return; /* its end, or ours, came first */
    if (take(l, f) < 0) {
        l->n = 0; /* the last ones were not kept; the sandbox's end ends it */
        l->bytes.size = 0;
        sandbox_fail(l->sandbox, ERR_INVALID, "the sandbox sent a frame that fits no listing");
    }
    later_ask(&l->later);
}

static void fail(struct listing *l, const struct err *e)
{
    l->err = *e;
    l->over = true;
    later_ask(&l->later);
}

static void on_lost(void *owner, const struct err *e)
{
    struct listing *l = owner;

    l->sandbox = NULL;
    if (!l->over)
        fail(l, e);
}

/* What is here is given. */
static void on_deadline(void *owner)
{
    struct listing *l = owner;

    l->cut |= !l->over;
    l->over = true;
    later_ask(&l->later);
}

static const struct channel_ops channel_ops = {on_frame, on_lost, NULL};

struct listing *listing_start(struct sandbox *s, const char *dir,
                              const struct listing_bounds *bounds,
                              void (*done)(void *owner, const struct err *e,
                                           const struct listing_row *rows, size_t n, bool cut),
                              void *owner)
{
    struct listing     *l = calloc(1, sizeof *l);
    struct message_scan m = {.entries = bounds->entries, .depth = bounds->depth, .path = dir};
    autobuf struct buf  b;

    if (!l)
        abort();
    *l = (struct listing){.sandbox = s, .most = bounds->entries, .done = done, .owner = owner};
    buf_init(&l->bytes, SCAN_BYTES_MAX);
    later_init(&l->later, sandbox_base(s), step, l);
    deadline_init(&l->deadline, sandbox_base(s), on_deadline, l);
    l->id = sandbox_open_channel(s, &channel_ops, l);
    buf_init(&b, 8192);
    if (message_pack_scan(&b, &m) < 0) {
        struct err e = {0};
        err_set(&e, ERR_INVALID, "%.120s is not the path of a directory in the workspace", dir);
        l->closed = true;
        fail(l, &e);
        return l;
    }
    deadline_set(&l->deadline, bounds->ms);
    sandbox_send(s, FRAME_SCAN, l->id, 0, b.data, b.size);
    return l;
}

void listing_cancel(struct listing *l)
{
    listing_free(l);
}
