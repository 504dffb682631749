#include "box/changes.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "box/snapshot.h"
#include "loop/later.h"
#include "sandbox/download.h"
#include "sandbox/listing.h"
#include "sandbox/mime.h"

/* What a listing by init may cost: a sandbox's own disk is small. */
static const struct listing_bounds bounds = {.entries = 10000, .depth = 32, .ms = 2000};

static const char prefix[] = "files/";

enum changes_state { CHANGES_LOOK, CHANGES_RUN, CHANGES_ROWS, CHANGES_CONTENT, CHANGES_DONE };

struct changes {
    struct sandbox           *sandbox; /* NULL: it is gone */
    struct files             *files;   /* or NULL: init lists */
    struct files_mark        *mark;
    const struct changes_ops *ops;
    void                     *owner;
    enum changes_state        state;
    bool                      waiting;
    struct later              later;
    struct listing           *listing;
    struct download          *download;
    struct snapshot           before, after;
    struct change            *rows;
    size_t                    n, next; /* next: whose content is to be read */
    size_t                    shown, bytes;
    bool                      cut;
};

/* ---- rows, as init lists them ---- */

static void on_listing(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                       bool cut)
{
    struct changes *c = owner;
    bool            is_first = c->state == CHANGES_LOOK;

    c->listing = NULL;
    snapshot_fill(is_first ? &c->before : &c->after, prefix, rows, e->kind ? 0 : n, cut || e->kind);
    c->waiting = false;
    later_ask(&c->later);
}

static void begin_listing(struct changes *c)
{
    c->listing = listing_start(c->sandbox, "files", &bounds, on_listing, c);
    c->waiting = true;
}

static void compare(struct changes *c)
{
    autofree struct snapshot_change *list = snapshot_compare(&c->before, &c->after, &c->n);

    c->cut = c->before.cut || c->after.cut;
    c->rows = calloc(c->n + 1, sizeof *c->rows);
    if (!c->rows)
        abort();
    for (size_t i = 0; i < c->n; i++)
        c->rows[i] =
            (struct change){.path = list[i].file->path,
                            .change = list[i].change,
                            .size = list[i].change == FILES_DELETED ? 0 : list[i].file->size,
                            .mime_type = mime_of(list[i].file->path, NULL, 0)};
}

/* ---- rows, as the watch tells them ---- */

static void on_over_quota(void *owner)
{
    struct changes *c = owner;

    c->ops->over_quota(c->owner);
}

static void on_marked(void *owner, const struct files_row *rows, size_t n, bool cut)
{
    struct changes *c = owner;

    c->rows = calloc(n + 1, sizeof *c->rows);
    if (!c->rows)
        abort();
    for (size_t i = 0; i < n; i++)
        c->rows[i] = (struct change){.path = rows[i].path,
                                     .change = rows[i].change,
                                     .size = rows[i].size,
                                     .mime_type = rows[i].mime_type};
    c->n = n;
    c->cut = cut;
    c->waiting = false;
    later_ask(&c->later);
}

static const struct files_mark_ops mark_ops = {on_over_quota, on_marked};

/* ---- contents ---- */

static size_t wanted(const struct changes *c, const struct change *row)
{
    size_t max = mime_is_image(row->mime_type) ? CHANGES_IMAGE_MAX : CHANGES_TEXT_MAX;

    if (row->change == FILES_DELETED || c->shown == CHANGES_SHOWN || row->size > (int64_t)max ||
        c->bytes + (size_t)row->size > CHANGES_BYTES_MAX)
        return 0;
    return max;
}

/* The bytes decide what it is; a file that grew meanwhile is not shown. */
static void take_content(struct changes *c, struct change *row, const uint8_t *bytes, size_t size,
                         uint64_t whole)
{
    row->mime_type = mime_of(row->path, bytes, size);
    if (whole != size || (!mime_is_image(row->mime_type) && !mime_is_text(row->mime_type)) ||
        (mime_is_text(row->mime_type) && size > CHANGES_TEXT_MAX))
        return;
    row->content = malloc(size + 1);
    if (!row->content)
        abort();
    if (size > 0) /* of an empty file there may be no bytes at all */
        memcpy(row->content, bytes, size);
    row->content_size = size;
    c->shown++;
    c->bytes += size;
}

static void on_download(void *owner, const struct err *e, const uint8_t *bytes, size_t size,
                        uint64_t whole)
{
    struct changes *c = owner;

    c->download = NULL;
    if (!e->kind) /* else it was no file, or is gone again: a row without content */
        take_content(c, &c->rows[c->next - 1], bytes, size, whole);
    c->waiting = false;
    later_ask(&c->later);
}

static void read_inside(struct changes *c, const struct change *row, size_t max)
{
    autofree char *path = str_format("%s%s", prefix, row->path);

    c->download = download_start(c->sandbox, path, max, on_download, c);
    c->waiting = true;
}

static void read_here(struct changes *c, struct change *row, size_t max)
{
    autobuf struct buf bytes;
    uint64_t           whole;

    buf_init(&bytes, max + 1);
    if (files_read(c->files, row->path, max, &bytes, &whole, NULL) == 0)
        take_content(c, row, bytes.data, bytes.size, whole);
}

static void read_next(struct changes *c)
{
    struct change *row = &c->rows[c->next++];
    size_t         max = wanted(c, row);

    if (max > 0 && c->files)
        read_here(c, row, max);
    else if (max > 0 && c->sandbox)
        read_inside(c, row, max);
}

/* ---- the step ---- */

static void begin_rows(struct changes *c)
{
    if (c->mark) {
        files_mark_end(c->mark);
        c->waiting = true;
    } else if (c->sandbox) {
        begin_listing(c);
    } else { /* all of it went with the sandbox */
        c->after.cut = true;
    }
}

static void step(void *owner)
{
    struct changes *c = owner;

    while (!c->waiting)
        switch (c->state) {
        case CHANGES_LOOK:
            c->state = CHANGES_RUN;
            c->waiting = true; /* for changes_end */
            c->ops->begun(c->owner);
            break;
        case CHANGES_RUN:
            c->state = CHANGES_ROWS;
            begin_rows(c);
            break;
        case CHANGES_ROWS:
            c->state = CHANGES_CONTENT;
            if (!c->files)
                compare(c);
            break;
        case CHANGES_CONTENT:
            if (c->next < c->n)
                read_next(c);
            else
                c->state = CHANGES_DONE;
            break;
        case CHANGES_DONE:
            c->waiting = true;
            c->ops->ended(c->owner);
            return;
        }
}

/* ---- beginning and end ---- */

struct changes *changes_start(struct sandbox *s, struct files *files, int64_t quota_bytes,
                              const struct changes_ops *ops, void *owner)
{
    struct changes *c = calloc(1, sizeof *c);

    if (!c)
        abort();
    *c = (struct changes){.sandbox = s, .files = files, .ops = ops, .owner = owner};
    later_init(&c->later, sandbox_base(s), step, c);
    if (files)
        c->mark = files_mark(files, quota_bytes, &mark_ops, c);
    else
        begin_listing(c);
    if (!c->waiting)
        later_ask(&c->later);
    return c;
}

void changes_end(struct changes *c)
{
    c->waiting = false;
    later_ask(&c->later);
}

void changes_lose(struct changes *c)
{
    c->sandbox = NULL; /* listings and downloads under way were told, and have told us */
}

const struct change *changes_rows(const struct changes *c, size_t *ret_n, bool *ret_cut)
{
    *ret_n = c->n;
    *ret_cut = c->cut;
    return c->rows;
}

void changes_free(struct changes *c)
{
    if (c->listing)
        listing_cancel(c->listing);
    if (c->download)
        download_cancel(c->download);
    if (c->mark)
        files_mark_free(c->mark);
    for (size_t i = 0; i < c->n; i++)
        free(c->rows[i].content);
    free(c->rows);
    snapshot_done(&c->before);
    snapshot_done(&c->after);
    later_done(&c->later);
    free(c);
}
