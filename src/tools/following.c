/* Theory of operation. Each round takes the subscriptions as they are now: a row for each file of a
 * box that its subscriber may read. Rows that nobody asked for any more are dropped; of the others
 * the directory is listed. What is found is compared with what was found before; the first look
 * only remembers. The next round comes a second after this one, as long as there are rows. */
#include "tools/following.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/fd.h"
#include "base/str.h"
#include "loop/deadline.h"
#include "mcp/template.h"
#include "sandbox/listing.h"

enum { ROUND_MS = 1000, ROWS_MAX = 64 };

struct look { /* what is to be seen of a file from outside */
    bool     is_there;
    uint64_t size;
    int64_t  mtime_ns;
};

struct row {
    LIST_ENTRY(row) entry;
    struct following *all;
    char             *uri, *principal, *path;
    struct listing   *listing; /* under way, or NULL */
    struct look       last;
    bool              was_seen, is_wanted;
};

struct following {
    struct tools   *tools;
    struct deadline round;
    LIST_HEAD(following_rows, row) rows;
    size_t n;
};

static void row_free(struct row *r)
{
    LIST_REMOVE(r, entry);
    r->all->n--;
    if (r->listing)
        listing_cancel(r->listing);
    free(r->uri);
    free(r->principal);
    free(r->path);
    free(r);
}

/* ---- looking ---- */

static void on_listed(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                      bool cut)
{
    struct row *r = owner;
    struct look now = {0};

    r->listing = NULL;
    for (size_t i = 0; i < (e->kind ? 0 : n); i++)
        if (strcmp(rows[i].path, r->path) == 0)
            now = (struct look){true, rows[i].size, rows[i].mtime_ns};
    if (e->kind || (cut && !now.is_there))
        return; /* that says nothing about it */
    if (r->was_seen && (now.is_there != r->last.is_there || now.size != r->last.size ||
                        now.mtime_ns != r->last.mtime_ns))
        mcp_server_resource_updated(r->all->tools->mcp, r->principal, r->uri);
    r->was_seen = true;
    r->last = now;
}

static void look_at(struct row *r, struct sandbox *s)
{
    static const struct listing_bounds bounds = {.entries = 1000, .depth = 1, .ms = 1000};
    const char                        *slash = strrchr(r->path, '/');
    autofree char *dir = str_ndup(r->path, slash ? (size_t)(slash - r->path) : 0);

    r->listing = listing_start(s, dir, &bounds, on_listed, r);
}

/* ---- the round ---- */

static struct row *ensure_row(struct following *f, const char *principal, const char *uri,
                              const char *path)
{
    struct row *r;

    LIST_FOREACH (r, &f->rows, entry)
        if (strcmp(r->uri, uri) == 0 && strcmp(r->principal, principal) == 0)
            return r;
    if (f->n == ROWS_MAX)
        return NULL; /* a subscription is a convenience: the file can be read all the same */
    r = calloc(1, sizeof *r);
    if (!r)
        abort();
    *r = (struct row){
        .all = f, .uri = str_dup(uri), .principal = str_dup(principal), .path = str_dup(path)};
    LIST_INSERT_HEAD(&f->rows, r, entry);
    f->n++;
    return r;
}

static void take_subscription(void *data, const char *owner, const char *principal, const char *uri)
{
    struct following *f = data;
    autojson json_t  *values =
        str_starts(uri, "sandbox://") ? template_match("sandbox://{id}/{+path}", uri) : NULL;
    const char *id = json_string_value(json_object_get(values, "id"));
    struct box *b = id ? boxes_find(f->tools->boxes, id, owner) : NULL;
    struct row *r = NULL;

    if (b && box_sandbox(b))
        r = ensure_row(f, principal, uri, json_string_value(json_object_get(values, "path")));
    if (!r || r->is_wanted)
        return;
    r->is_wanted = true;
    if (!r->listing)
        look_at(r, box_sandbox(b));
}

static void look(void *owner)
{
    struct following *f = owner;
    struct row       *r, *next;

    LIST_FOREACH (r, &f->rows, entry)
        r->is_wanted = false;
    mcp_server_subscriptions(f->tools->mcp, take_subscription, f);
    for (r = LIST_FIRST(&f->rows); r; r = next) {
        next = LIST_NEXT(r, entry);
        if (!r->is_wanted)
            row_free(r);
    }
    if (f->n > 0)
        deadline_set(&f->round, ROUND_MS);
}

/* ---- beginning and end ---- */

void following_look(struct following *f)
{
    deadline_set(&f->round, 0);
}

struct following *following_new(struct tools *t, struct event_base *base)
{
    struct following *f = calloc(1, sizeof *f);

    if (!f)
        abort();
    f->tools = t;
    LIST_INIT(&f->rows);
    deadline_init(&f->round, base, look, f);
    return f;
}

void following_free(struct following *f)
{
    while (!LIST_EMPTY(&f->rows))
        row_free(LIST_FIRST(&f->rows));
    deadline_done(&f->round);
    free(f);
}
