#include "tools/shares.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

struct row {
    LIST_ENTRY(row) entry;
    struct shares *all;
    char          *principal, *dir;
    struct files  *files;
};

struct shares {
    struct event_base *base;
    char              *dir;
    void (*changed)(void *owner, const char *principal, const char *dir, const char *path,
                    enum files_change how);
    void (*note)(const char *sentence);
    void *owner;
    LIST_HEAD(row_list, row) rows;
};

static void on_changed(void *owner, const char *path, enum files_change how)
{
    struct row *r = owner;

    r->all->changed(r->all->owner, r->principal, r->dir, path, how);
}

static void on_note(void *owner, const char *sentence)
{
    struct row *r = owner;

    r->all->note(sentence);
}

static const struct files_ops files_ops = {on_changed, on_note};

static void row_free(struct row *r)
{
    if (r->files)
        files_close(r->files);
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

struct shares *shares_new(struct event_base *base, const char *dir,
                          void (*changed)(void *owner, const char *principal, const char *dir,
                                          const char *path, enum files_change how),
                          void (*note)(const char *sentence), void *owner)
{
    struct shares *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->base = base;
    s->dir = dir ? str_dup(dir) : NULL;
    s->changed = changed;
    s->note = note;
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
