/* The loop of it.
 *
 * readable -> step: events are taken, each names a path, some of them are looked at
 * (files_tree.c), runs are told (files_mark.c). Then a pause, during which events gather in the
 * kernel: a program that does nothing but change files gets us to work a slice in each pause, no
 * more. Only a run that ends waits for nothing: slices follow each other, the loop between them.
 *
 * Events that the kernel had no room for (IN_Q_OVERFLOW), or we had none for, are made up by a walk
 * through everything; so is, once a run, all that could not be watched, and every half second while
 * a quota depends on it. One walk at a time: whoever makes events be lost all the time gets no more
 * of our time than a pause leaves. */
#include "sandbox/files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/files_private.h"

enum {
    SLICE_MS = 3,
    PAUSE_MS = 10,
    WALK_AGAIN_MS = 500,
    NEWS_MAX = 65536, /* that events may add */
    NEWS_BYTES_MAX = 32 << 20,
};

const struct files_limits files_limits = {.watched = 65536, .known = 1000000, .rows = 16384};

/* ---- events ---- */

static void lose(struct files *f)
{
    f->lost = true;
    f->lost_since = f->n_marks;
    if (!f->noted_lost && f->ops && f->ops->note)
        f->ops->note(f->owner,
                     "files changed faster than they could be followed: all are looked at anew");
    f->noted_lost = true;
}

static void on_event(void *owner, const char *dir, const char *name, uint32_t mask)
{
    struct files  *f = owner;
    autofree char *path =
        *dir && *name ? str_format("%s/%s", dir, name) : str_dup(*name ? name : dir);
    unsigned why = mask & IN_MODIFY ? LOOK_WRITTEN : 0;

    /* While it was away, news of what is in it led to looks that found nothing. */
    if ((mask & IN_MOVED_TO) && (mask & IN_ISDIR))
        why |= LOOK_DEEP;

    if (f->news.n >= NEWS_MAX || f->news.bytes >= NEWS_BYTES_MAX)
        lose(f);
    else
        files_tree_look(f, path, why, f->n_marks);
}

static void on_ended(void *owner, const char *dir, int wd)
{
    struct files *f = owner;
    struct state *known = paths_find(&f->known, dir);

    if (known && known->wd == wd)
        known->wd = 0;
    files_tree_look(f, dir, 0, f->n_marks);
}

static void on_overflow(void *owner)
{
    lose(owner);
}

static bool to_the_end(void *owner)
{
    (void)owner;
    return true;
}

static bool has_time(void *owner)
{
    const struct files *f = owner;

    return clock_ms() < f->slice_end_ms;
}

/* ---- slices ---- */

static const struct watches_ops watches_ops = {on_event, on_ended, on_overflow};

static bool is_settled(const struct files *f)
{
    return !f->behind && !f->lost && !f->stale && files_tree_is_settled(f);
}

static bool is_unwatched(const struct files *f)
{
    return f->unwatched || f->retrying;
}

static void begin_walk(struct files *f)
{
    files_tree_look(f, "", LOOK_DEEP, f->lost ? f->lost_since : 0);
    f->lost = f->stale = false;
    f->retrying = f->unwatched; /* perhaps there are fewer by now */
    f->unwatched = false;
    f->walked_ms = clock_ms();
}

static void slice(struct files *f)
{
    unsigned n = 0;

    f->in_slice = true;
    f->slice_end_ms = clock_ms() + SLICE_MS;
    if (f->watches)
        f->behind = !watches_take(f->watches, &watches_ops, has_time, f);
    if ((f->lost || f->stale) && f->deep == 0)
        begin_walk(f);
    while (files_tree_step(f))
        if (++n % 16 == 0 && !has_time(f))
            break;
    if (f->deep == 0)
        f->retrying = false;
    if (is_settled(f))
        f->noted_lost = false;
    f->in_slice = false;
}

/* How long until the next walk for the sake of a quota; -1: none is needed. */
static int64_t walk_again_ms(const struct files *f)
{
    int64_t left = f->walked_ms + WALK_AGAIN_MS - clock_ms();

    return !is_unwatched(f) || !marks_any_quota(f) ? -1 : left > 0 ? left : 0;
}

static void step(void *owner)
{
    struct files *f = owner;

    if (f->readable)
        event_del(f->readable);
    f->stale |= walk_again_ms(f) == 0;
    slice(f);
    marks_step(f, is_settled(f));
    if (marks_any_ending(f))
        later_ask(&f->later);
    else
        deadline_set(&f->pause, PAUSE_MS);
}

static void on_pause_over(void *owner)
{
    struct files *f = owner;
    int64_t       again_ms = walk_again_ms(f);

    if (!is_settled(f) || again_ms == 0) {
        step(f);
        return;
    }
    if (again_ms > 0)
        deadline_set(&f->pause, again_ms);
    if (f->readable && event_add(f->readable, NULL) < 0)
        deadline_set(&f->pause, PAUSE_MS); /* then again */
}

static void on_readable(evutil_socket_t fd, short what, void *owner)
{
    (void)fd;
    (void)what;
    step(owner);
}

/* Events that wait in the kernel are older than the mark that is about to be made: all are taken,
 * whatever the time; there are at most fs.inotify.max_queued_events. */
void files_settle(struct files *f)
{
    if (!f->in_slice) { /* else we are in somebody's `changed`, and these were just taken */
        if (f->watches)
            watches_take(f->watches, &watches_ops, to_the_end, f);
        slice(f);
    }
    later_ask(&f->later);
}

void files_settle_all(struct files *f)
{
    f->stale |= is_unwatched(f); /* nobody told us of what is not watched */
    later_ask(&f->later);
}

/* ---- from outside ---- */

static void first_walk(struct files *f)
{
    f->stale = true;
    do {
        slice(f);
    } while (!is_settled(f));
    f->opened = true;
}

struct files *files_open(struct event_base *base, const char *dir,
                         const struct files_limits *limits, const struct files_ops *ops,
                         void *owner, struct err *e)
{
    autofd int    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct files *f;

    if (dir_fd < 0) {
        err_sys(e, "the directory of files, %s", dir);
        return NULL;
    }
    f = calloc(1, sizeof *f);
    if (!f)
        abort();
    f->limits = limits ? *limits : files_limits;
    f->ops = ops;
    f->owner = owner;
    f->dir_fd = take_fd(&dir_fd);
    f->watches = watches_new(f->limits.watched, NULL);
    paths_init(&f->known, sizeof(struct state));
    paths_init(&f->news, sizeof(struct look));
    paths_init(&f->dirs, sizeof(struct look));
    later_init(&f->later, base, step, f);
    deadline_init(&f->pause, base, on_pause_over, f);
    if (f->watches)
        f->readable = event_new(base, watches_fd(f->watches), EV_READ, on_readable, f);
    if (f->watches && !f->readable)
        abort();
    first_walk(f);
    later_ask(&f->later);
    return f;
}

bool files_is_at(const struct files *f, const char *dir)
{
    struct stat there, here; /* ours is held open: no other gets its number */

    if (fstat(f->dir_fd, &here) < 0)
        return true;
    if (stat(dir, &there) < 0) /* only a directory that is gone is another one, not one of which a
                                  disk cannot tell just now */
        return errno != ENOENT && errno != ENOTDIR;
    return there.st_ino == here.st_ino && there.st_dev == here.st_dev;
}

void files_close(struct files *f)
{
    if (!f)
        return;
    assert(!f->marks);
    if (f->readable)
        event_free(f->readable);
    later_done(&f->later);
    deadline_done(&f->pause);
    files_tree_done(f);
    watches_free(f->watches);
    fd_close(&f->dir_fd);
    free(f);
}
