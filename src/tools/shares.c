#include "tools/shares.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "loop/deadline.h"
#include "tools/file_uri.h"

/* A script can write to a file, or make files, as fast as it likes; clients are told in rounds. */
enum { ROUND_MS = 100, ROUND_URIS = 1000 };

struct row {
    LIST_ENTRY(row) entry;
    struct shares  *all;
    char           *principal, *dir;
    struct files   *files;
    struct deadline round;
    bool            is_due; /* the round is set */
    json_t         *uris;   /* of this round: an object, uri to true */
    bool            listed;
};

struct shares {
    struct event_base       *base;
    char                    *dir;
    const struct shares_ops *ops;
    void                    *owner;
    LIST_HEAD(row_list, row) rows;
};

static void tell(void *owner)
{
    struct row *r = owner;
    const char *uri;
    json_t     *value;

    json_object_foreach (r->uris, uri, value)
        r->all->ops->updated(r->all->owner, r->principal, uri);
    json_object_clear(r->uris);
    if (r->listed)
        r->all->ops->listed(r->all->owner, r->principal);
    r->listed = r->is_due = false;
}

static void on_changed(void *owner, const char *path, enum files_change how)
{
    struct row    *r = owner;
    autofree char *uri = file_uri_on_host(r->dir, path);

    json_object_set_new(r->uris, uri, json_true());
    r->listed = r->listed || how != FILES_UPDATED;
    if (json_object_size(r->uris) >= ROUND_URIS) {
        deadline_clear(&r->round);
        tell(r);
    } else if (!r->is_due) {
        r->is_due = true;
        deadline_set(&r->round, ROUND_MS);
    }
}

static void on_note(void *owner, const char *sentence)
{
    struct row *r = owner;

    r->all->ops->note(r->all->owner, sentence);
}

static const struct files_ops files_ops = {on_changed, on_note};

static void row_free(struct row *r)
{
    if (r->files)
        files_close(r->files);
    deadline_done(&r->round);
    json_decref(r->uris);
    free(r->principal);
    free(r->dir);
    free(r);
}

/* A token's name is a word of its file: it may not lead out of the folder. */
static int make_dir(const char *dir, const char *name, char **ret, struct err *e)
{
    autofree char *path = NULL;

    if (!*name) {
        *ret = str_dup(dir);
        return 0;
    }
    if (strchr(name, '/') || name[0] == '.')
        return err_set(e, ERR_INVALID, "the name '%.60s' cannot be a folder", name);
    path = str_format("%s/%s", dir, name);
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return err_sys(e, "%s", path);
    *ret = path;
    path = NULL;
    return 0;
}

static struct row *row_new(struct shares *s, const char *principal, struct err *e)
{
    struct row *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->all = s;
    r->principal = str_dup(principal);
    r->uris = json_object();
    deadline_init(&r->round, s->base, tell, r);
    if (make_dir(s->dir, principal, &r->dir, e) == 0)
        r->files = files_open(s->base, r->dir, NULL, &files_ops, r, e);
    if (!r->files) {
        row_free(r);
        return NULL;
    }
    LIST_INSERT_HEAD(&s->rows, r, entry);
    return r;
}

static struct row *find(const struct shares *s, const char *principal)
{
    struct row *r;

    LIST_FOREACH (r, &s->rows, entry)
        if (strcmp(r->principal, principal) == 0)
            return r;
    return NULL;
}

int shares_get(struct shares *s, const char *principal, struct share *ret, struct err *e)
{
    struct row *r;

    *ret = (struct share){0};
    if (!s->dir)
        return 0;
    r = find(s, principal);
    if (!r)
        r = row_new(s, principal, e);
    if (!r)
        return -1;
    *ret = (struct share){r->dir, r->files};
    return 0;
}

struct shares *shares_new(struct event_base *base, const char *dir, const struct shares_ops *ops,
                          void *owner)
{
    struct shares *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->base = base;
    s->dir = dir ? str_dup(dir) : NULL;
    s->ops = ops;
    s->owner = owner;
    return s;
}

void shares_free(struct shares *s)
{
    while (!LIST_EMPTY(&s->rows)) {
        struct row *r = LIST_FIRST(&s->rows);
        LIST_REMOVE(r, entry);
        row_free(r);
    }
    free(s->dir);
    free(s);
}
