/* The accounts of runs: for each path that changed, what it was when the run began and what it is
 * now. Rows are made of that at the end; what is nothing at both times is forgotten at once, so
 * that a run which makes and removes a million files holds none of them. */
#include "sandbox/files_private.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/mime.h"

enum { END_MS = 2000, TOUCHED_BYTES_MAX = 16 << 20, HEADS_MAX = 1024 };

struct touch {
    struct state before, now;
};

struct files_mark {
    struct files_mark           *next; /* older */
    struct files                *files;
    const struct files_mark_ops *ops;
    void                        *owner;
    uint64_t                     number;
    int64_t                      began_ns; /* of the clock that files get their times from */
    int64_t                      quota, growth;
    struct paths                 touched; /* struct touch */
    struct files_row            *rows;
    struct deadline              deadline;
    bool                         cut, late;
    bool                         is_over, over_told; /* its quota */
    bool                         ending, ended;
};

const char *files_change_name(enum files_change change)
{
    static const char *const names[] = {"created", "updated", "deleted"};

    return names[change];
}

/* ---- what the tree tells ---- */

uint64_t marks_at(const struct files *f, int64_t realtime_ns)
{
    for (const struct files_mark *m = f->marks; m; m = m->next)
        if (m->began_ns <= realtime_ns)
            return m->number;
    return 0;
}

static bool is_row(const struct state *s)
{
    return s->kind != FILES_NOTHING && s->kind != FILES_DIRECTORY;
}

static void touch(struct files_mark *m, const char *path, const struct state *before,
                  const struct state *now)
{
    struct touch *t = paths_find(&m->touched, path);

    if (!t) {
        if (m->touched.n >= m->files->limits.rows || m->touched.bytes > TOUCHED_BYTES_MAX) {
            m->cut = true;
            return;
        }
        t = paths_put(&m->touched, path);
        t->before = *before;
    }
    t->now = *now;
    if (!is_row(&t->before) && !is_row(&t->now))
        paths_remove(&m->touched, path);
}

void marks_changed(struct files *f, const char *path, const struct state *before,
                   const struct state *after, uint64_t since)
{
    enum files_change change = !is_row(before)  ? FILES_CREATED
                               : !is_row(after) ? FILES_DELETED
                                                : FILES_UPDATED;

    if (!is_row(before) && !is_row(after))
        return;
    for (struct files_mark *m = f->marks; m; m = m->next) {
        if (m->number > since || m->ended)
            continue;
        touch(m, path, before, after);
    }
    if (f->opened && f->ops && f->ops->changed)
        f->ops->changed(f->owner, path, change);
}

void marks_grew(struct files *f, int64_t bytes, uint64_t since)
{
    for (struct files_mark *m = f->marks; m; m = m->next)
        if (m->number <= since && !m->ended) {
            m->growth += bytes;
            m->is_over |= m->quota > 0 && m->growth > m->quota;
        }
}

void marks_blind(struct files *f, uint64_t since)
{
    for (struct files_mark *m = f->marks; m; m = m->next)
        if (m->number <= since && !m->ended) {
            m->cut = true;
            m->is_over |= m->quota > 0; /* what cannot be counted may be any number */
        }
}

/* ---- the rows ---- */

/* By its first bytes; by the name alone if it cannot be read, and when there are very many. */
static const char *mime_type_of(const struct files *f, const char *path, size_t i)
{
    uint8_t    head[MIME_HEAD];
    ssize_t    n = -1;
    autofd int fd = -1;

    if (i < HEADS_MAX)
        fd = files_open_regular(f, path, NULL, NULL);
    if (fd >= 0)
        n = pread(fd, head, sizeof head, 0);
    return mime_of(path, n < 0 ? NULL : head, n < 0 ? 0 : (size_t)n);
}

static struct files_row row_of(const struct files *f, const char *path, const struct touch *t,
                               size_t i)
{
    bool             was = is_row(&t->before), is = is_row(&t->now);
    struct files_row row = {
        .path = path,
        .change = !was ? FILES_CREATED
                  : is ? FILES_UPDATED
                       : FILES_DELETED,
        .kind = is ? t->now.kind : t->before.kind,
        .size = is ? t->now.size : 0,
    };

    row.mime_type = row.kind == FILES_LINK    ? "inode/symlink"
                    : row.kind == FILES_OTHER ? "application/octet-stream"
                    : is                      ? mime_type_of(f, path, i)
                                              : mime_of(path, NULL, 0);
    return row;
}

static void tell_end(struct files_mark *m)
{
    const char *path = NULL;
    void       *value;
    size_t      n = 0;

    m->ended = true;
    m->rows = calloc(m->touched.n + 1, sizeof *m->rows);
    if (!m->rows)
        abort();
    while ((path = paths_next(&m->touched, path, PATHS_AFTER, &value))) {
        m->rows[n] = row_of(m->files, path, value, n);
        n++;
    }
    m->ops->done(m->owner, m->rows, n, m->cut || m->late);
}

/* ---- what the loop asks ---- */

bool marks_any_ending(const struct files *f)
{
    for (const struct files_mark *m = f->marks; m; m = m->next)
        if (m->ending && !m->ended)
            return true;
    return false;
}

bool marks_any_quota(const struct files *f)
{
    for (const struct files_mark *m = f->marks; m; m = m->next)
        if (m->quota > 0 && !m->is_over && !m->ended)
            return true;
    return false;
}

/* Calls what is due for one; false: nothing was. */
static bool tell(struct files_mark *m, bool settled)
{
    if (m->is_over && !m->over_told) {
        m->over_told = true;
        if (m->ops->over_quota)
            m->ops->over_quota(m->owner);
        return true;
    }
    if (m->ending && !m->ended && (settled || m->late)) {
        tell_end(m);
        return true;
    }
    return false;
}

void marks_step(struct files *f, bool settled)
{
    struct files_mark *m = f->marks;

    while (m)
        m = tell(m, settled) ? f->marks : m->next; /* an op may have freed any of them */
}

/* ---- from outside ---- */

static void on_deadline(void *owner)
{
    struct files_mark *m = owner;

    m->late = true;
    later_ask(&m->files->later);
}

struct files_mark *files_mark(struct files *f, int64_t quota_bytes,
                              const struct files_mark_ops *ops, void *owner)
{
    struct files_mark *m = calloc(1, sizeof *m);
    struct timespec    now;

    if (!m)
        abort();
    files_settle(f); /* so that what was before is before */
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    *m = (struct files_mark){.next = f->marks,
                             .files = f,
                             .ops = ops,
                             .owner = owner,
                             .number = ++f->n_marks,
                             .began_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec,
                             .quota = quota_bytes};
    paths_init(&m->touched, sizeof(struct touch));
    deadline_init(&m->deadline, f->pause.base, on_deadline, m);
    f->marks = m;
    return m;
}

int64_t files_mark_growth(const struct files_mark *m)
{
    return m->growth;
}

void files_mark_end(struct files_mark *m)
{
    assert(!m->ending);
    m->ending = true;
    deadline_set(&m->deadline, END_MS);
    files_settle_all(m->files);
}

void files_mark_free(struct files_mark *m)
{
    struct files_mark **at = &m->files->marks;

    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    deadline_done(&m->deadline);
    paths_done(&m->touched);
    free(m->rows);
    free(m);
}
