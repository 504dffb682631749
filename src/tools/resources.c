/* resources - files below FILES_DIR (file://), files of live sandboxes (sandbox://ID/PATH, logs of
 * servers among them), whole outputs of runs (output://ID).
 *
 * Everybody sees what is his: his share, his sandboxes, his outputs. A sandbox that belongs to
 * nobody is found by its id and listed nowhere. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/utf8.h"
#include "box/server.h"
#include "sandbox/download.h"
#include "sandbox/listing.h"
#include "sandbox/mime.h"
#include "tools/errors.h"
#include "tools/file_uri.h"
#include "tools/tools.h"

enum { READ_MAX = 16 << 20, PAGE = 100, COMPLETIONS = 100 };

/* ---- contents ---- */

static void answer(struct mcp_call *c, const char *path, const uint8_t *bytes, size_t size)
{
    const char *type = mime_of(path, bytes, size < MIME_HEAD ? size : MIME_HEAD);

    if (size == 0) /* of an empty file there may be no bytes at all */
        bytes = (const uint8_t *)"";
    if (mime_is_text(type) && utf8_is_valid(bytes, size) && !memchr(bytes, '\0', size)) {
        autofree char *text = str_ndup((const char *)bytes, size);
        mcp_call_contents(c, type, text);
    } else {
        autofree char *blob = base64_encode(bytes, size);
        mcp_call_contents_blob(c, type, blob);
    }
    mcp_call_done(c);
}

static void refuse(struct mcp_call *c, uint64_t whole)
{
    errors_refuse(c, LARGE_RESOURCE, (unsigned long long)whole, READ_MAX >> 20);
}

/* ---- FILES_DIR ---- */

static void read_file(struct mcp_call *c)
{
    struct share       share;
    autofree char     *path = NULL;
    autobuf struct buf bytes;
    uint64_t           whole;
    struct err         e = {0};

    buf_init(&bytes, READ_MAX + 1);
    if (shares_get(tools_of(c)->shares, mcp_call_principal(c), &share, &e) < 0 || !share.dir ||
        !(path = file_uri_below(mcp_call_uri(c), share.dir)) ||
        files_read(share.files, path, READ_MAX, &bytes, &whole, &e) < 0)
        mcp_call_not_found(c); /* one answer for what is not there and what is not yours */
    else if (whole > bytes.size)
        refuse(c, whole);
    else
        answer(c, path, bytes.data, bytes.size);
}

struct page {
    struct mcp_call *call;
    const char      *dir, *prefix; /* prefix: of a completion */
    size_t           n, max;
    char            *last;
    bool             more;
};

static bool list_one(void *owner, const struct files_entry *entry)
{
    struct page   *p = owner;
    autofree char *uri = file_uri_on_host(p->dir, entry->path);

    if (entry->kind == FILES_OTHER)
        return true; /* a FIFO, a socket: there is nothing to read */
    if (p->n == p->max) {
        p->more = true;
        return false;
    }
    p->n++;
    mcp_call_listed(p->call,
                    json_pack("{s:s, s:o, s:s, s:I}", "uri", uri, "name",
                              json_text(entry->path, strlen(entry->path)), "mimeType",
                              mime_of(entry->path, NULL, 0), "size", (json_int_t)entry->size));
    free(p->last);
    p->last = uri;
    uri = NULL;
    return true;
}

/* ---- a sandbox's files ---- */

struct reading {
    struct mcp_call *call;
    struct download *download;
    struct listing  *listing;
    char            *path, *prefix;
};

static void reading_free(void *data)
{
    struct reading *r = data;

    if (r->download)
        download_cancel(r->download);
    if (r->listing)
        listing_cancel(r->listing);
    free(r->path);
    free(r->prefix);
    free(r);
}

static struct reading *reading_new(struct mcp_call *c)
{
    struct reading *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->call = c;
    mcp_call_set_data(c, r, reading_free);
    return r;
}

static struct sandbox *find_sandbox(struct mcp_call *c, const char *id)
{
    struct box *b = id ? boxes_find(tools_of(c)->boxes, id, mcp_call_owner(c)) : NULL;

    return b ? box_sandbox(b) : NULL;
}

static void on_read(void *owner, const struct err *e, const uint8_t *bytes, size_t size,
                    uint64_t whole)
{
    struct reading *r = owner;

    r->download = NULL;
    if (e->kind)
        mcp_call_not_found(r->call);
    else if (whole > size)
        refuse(r->call, whole);
    else
        answer(r->call, r->path, bytes, size);
}

static void read_inside(struct mcp_call *c)
{
    struct sandbox *s = find_sandbox(c, mcp_call_variable(c, "id"));
    const char     *path = mcp_call_variable(c, "path");
    struct reading *r;

    if (!s || !path) {
        mcp_call_not_found(c);
        return;
    }
    r = reading_new(c);
    r->path = str_dup(path);
    r->download = download_start(s, path, READ_MAX, on_read, r);
}

/* ---- completion ---- */

static void complete_ids(struct mcp_call *c)
{
    for (struct box *b = NULL; (b = boxes_next(tools_of(c)->boxes, mcp_call_owner(c), b));)
        if (str_starts(box_id(b), mcp_call_prefix(c)))
            mcp_call_value(c, box_id(b));
    mcp_call_done(c);
}

static void on_listed(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                      bool cut)
{
    struct reading *r = owner;

    (void)cut; /* of what there is, the first hundred */
    r->listing = NULL;
    for (size_t i = 0; i < (e->kind ? 0 : n); i++)
        if (rows[i].kind != ROW_DIR && str_starts(rows[i].path, r->prefix))
            mcp_call_value(r->call, rows[i].path);
    mcp_call_done(r->call);
}

static void complete_paths(struct mcp_call *c)
{
    static const struct listing_bounds bounds = {.entries = 1000, .depth = 8, .ms = 1000};
    const char     *id = json_string_value(json_object_get(mcp_call_arguments(c), "id"));
    struct sandbox *s = find_sandbox(c, id);
    struct reading *r;

    if (!s) {
        mcp_call_done(c);
        return;
    }
    r = reading_new(c);
    r->prefix = str_dup(mcp_call_prefix(c));
    r->listing = listing_start(s, "", &bounds, on_listed, r);
}

static void complete_inside(struct mcp_call *c)
{
    if (strcmp(mcp_call_completes(c), "id") == 0)
        complete_ids(c);
    else
        complete_paths(c);
}

static bool complete_one(void *owner, const struct files_entry *entry)
{
    struct page   *p = owner;
    autofree char *uri = file_uri_on_host(p->dir, entry->path);
    const char    *path = uri + strlen("file:///");

    if (entry->kind != FILES_OTHER && str_starts(path, p->prefix)) {
        mcp_call_value(p->call, path);
        p->n++;
    }
    return p->n < p->max;
}

static void complete_file(struct mcp_call *c)
{
    struct share share;
    struct page  p = {.call = c, .prefix = mcp_call_prefix(c), .max = COMPLETIONS};

    if (shares_get(tools_of(c)->shares, mcp_call_principal(c), &share, NULL) == 0 && share.dir) {
        p.dir = share.dir;
        files_list(share.files, NULL, complete_one, &p);
    }
    mcp_call_done(c);
}

/* ---- lists ---- */

/* Background logs are all that is listed of a sandbox: its files are many, and change. */
static void list_boxes(struct mcp_call *c)
{
    for (struct box *b = NULL; (b = boxes_next(tools_of(c)->boxes, mcp_call_owner(c), b));) {
        const char *log;
        for (size_t i = 0; (log = server_log(b, i)); i++) {
            autofree char *uri = file_uri_in_box(box_id(b), log);
            mcp_call_listed(
                c, json_pack("{s:s, s:s, s:s}", "uri", uri, "name", log, "mimeType", "text/plain"));
        }
    }
}

/* Pages go by the URI of the last file; what there is besides files comes with the first. */
void tools_list_resources(struct mcp_call *c)
{
    struct share   share;
    struct page    p = {.call = c, .max = PAGE};
    autofree char *after = NULL;

    if (!mcp_call_cursor(c)) {
        list_boxes(c);
        outputs_list(tools_of(c)->outputs, mcp_call_owner(c), c);
    }
    if (shares_get(tools_of(c)->shares, mcp_call_principal(c), &share, NULL) == 0 && share.dir) {
        p.dir = share.dir;
        after = mcp_call_cursor(c) ? file_uri_below(mcp_call_cursor(c), share.dir) : NULL;
        files_list(share.files, after, list_one, &p);
    }
    if (p.more)
        mcp_call_set_next(c, p.last);
    free(p.last);
    mcp_call_done(c);
}

const struct mcp_resource tools_resources[] = {
    {.uri = "file:///{+path}",
     .name = "files",
     .title = "Files of the user",
     .description = "A file below FILES_DIR, which sandboxes see as /workspace/files.",
     .read = read_file,
     .complete = complete_file},
    {.uri = "sandbox://{id}/{+path}",
     .name = "sandbox-files",
     .title = "Files of a sandbox",
     .description = "A file below /workspace of a live sandbox: files/…, output.log of a "
                    "background server.",
     .read = read_inside,
     .complete = complete_inside},
    {.uri = "output://{id}",
     .name = "outputs",
     .title = "Whole outputs",
     .description = "All that a run printed, when its result shows only a part. A read gives at "
                    "most 4 MiB: output://ID/4194304 goes on from that byte.",
     .read = outputs_read},
    {.uri = "output://{id}/{from}",
     .name = "outputs-from",
     .title = "Whole outputs, from a byte on",
     .description = "The same from that byte on, at most 4 MiB.",
     .read = outputs_read},
    {0},
};
