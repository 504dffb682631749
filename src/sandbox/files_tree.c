/* What is there, from one look after the other.
 *
 * `settle` is the only function that changes what is known: it compares the state of one path with
 * what was known and tells the difference. Everything else only says where to look: at a path that
 * an event named (`news`), through a directory that is new (`dirs`), at everything after events
 * were lost (LOOK_DEEP). So it does not matter in which order events are read, or that a name means
 * something else by the time of the look: what is looked at is the truth of that moment, and a
 * later change has its own event. A directory that comes back from elsewhere is looked through
 * again, since meanwhile the truth about what is in it was that it is not there.
 *
 * A directory is looked through in steps, one directory at a time: first the watch, so that nothing
 * that comes later is missed; then each entry; then what was known in it and was not met becomes
 * news. News and passages take turns, so that neither a storm of events nor a huge directory hides
 * what else happens. A passage ends early when its directory is no longer where it was. */
#include "sandbox/files_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum { KNOWN_BYTES_MAX = 256 << 20 };

static const struct state nothing;

/* ---- where to look ---- */

static void put(struct files *f, struct paths *to, const char *path, unsigned why, uint64_t since)
{
    struct look *look;

    if (strlen(path) > FILES_PATH_MAX) {
        marks_blind(f, since);
        return;
    }
    look = paths_put(to, path);
    if ((why & LOOK_DEEP) && !(look->why & LOOK_DEEP))
        f->deep++;
    look->why |= why;
    if (look->since < since)
        look->since = since;
}

/* The first one; the caller frees it. NULL: there is none. */
static char *take(struct files *f, struct paths *from, struct look *ret_look)
{
    void       *look;
    const char *first = paths_next(from, NULL, PATHS_AFTER, &look);
    char       *path = first ? str_dup(first) : NULL;

    if (!path)
        return NULL;
    *ret_look = *(struct look *)look;
    paths_remove(from, path);
    if (ret_look->why & LOOK_DEEP)
        f->deep--;
    return path;
}

void files_tree_look(struct files *f, const char *path, unsigned why, uint64_t since)
{
    put(f, &f->news, path, why, since);
}

/* ---- one path ---- */

int files_tree_open(const struct files *f, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = (uint64_t)flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };

    return (int)syscall(SYS_openat2, f->dir_fd, *path ? path : ".", &how, sizeof how);
}

static int64_t ns_of(const struct timespec *t)
{
    return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

/* Space that is taken counts (fallocate can take it beyond the end), and space that is spoken for:
 * some filesystems tell of the former only seconds later. */
static int64_t cost_of(const struct stat *st)
{
    int64_t taken = (int64_t)st->st_blocks * 512;

    if (S_ISREG(st->st_mode) && st->st_size > taken)
        taken = st->st_size;
    return taken + FILES_NAME_COST;
}

static struct state state_of(const struct stat *st)
{
    return (struct state){
        .kind = S_ISREG(st->st_mode)   ? FILES_REGULAR
                : S_ISLNK(st->st_mode) ? FILES_LINK
                : S_ISDIR(st->st_mode) ? FILES_DIRECTORY
                                       : FILES_OTHER,
        .size = S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) ? st->st_size : 0,
        .cost = cost_of(st),
        .mtime_ns = ns_of(&st->st_mtim),
        .ctime_ns = ns_of(&st->st_ctim),
        .dev = st->st_dev,
        .ino = st->st_ino,
    };
}

static bool is_gone(int sys)
{
    return sys == ENOENT || sys == ENOTDIR || sys == ELOOP; /* a parent became a file, or a link */
}

/* -1: it cannot be told. */
static int state_now(const struct files *f, const char *path, struct state *ret)
{
    autofd int  fd = files_tree_open(f, path, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
    struct stat st;

    if (fd < 0 && !is_gone(errno))
        return -1;
    if (fd < 0 || fstat(fd, &st) < 0)
        *ret = nothing;
    else
        *ret = state_of(&st);
    return 0;
}

static bool differs(const struct state *a, const struct state *b)
{
    return a->kind != b->kind || a->size != b->size || a->mtime_ns != b->mtime_ns ||
           a->ino != b->ino || a->dev != b->dev;
}

/* ---- what is known ---- */

static void passage_end(struct files *f)
{
    struct passage *p = &f->passage;

    if (p->look.why & LOOK_DEEP)
        f->deep--;
    if (p->dir)
        closedir(p->dir);
    free(p->path);
    free(p->swept);
    *p = (struct passage){.round = p->round};
}

static void passage_leave(struct files *f, const char *path)
{
    if (f->passage.dir && strcmp(f->passage.path, path) == 0)
        passage_end(f);
}

static void forget(struct files *f, const char *path, uint64_t since)
{
    struct state *known = paths_find(&f->known, path), before = *known;

    if (before.kind == FILES_DIRECTORY)
        passage_leave(f, path);
    if (before.wd > 0)
        watches_remove(f->watches, before.wd, path);
    marks_grew(f, -before.cost, since);
    marks_changed(f, path, &before, &nothing, since);
    paths_remove(&f->known, path);
}

/* All below a directory that is one no more. False: the slice was over first. */
static bool forget_below(struct files *f, const char *dir, uint64_t since)
{
    const char *path;

    while ((path = paths_next(&f->known, dir, PATHS_AFTER, NULL)) && paths_is_below(path, dir)) {
        autofree char *gone = str_dup(path);
        forget(f, gone, since);
        if (f->opened && clock_ms() > f->slice_end_ms)
            return false;
    }
    return true;
}

/* Room for one more. What is not remembered cannot be told, nor counted. */
static bool has_room(struct files *f, uint64_t since)
{
    if (f->known.n < f->limits.known && f->known.bytes < KNOWN_BYTES_MAX)
        return true;
    marks_blind(f, since);
    if (!f->noted_full && f->ops && f->ops->note) {
        autofree char *text = str_format(
            "the directory of files has more than the %zu entries that can be watched; changes of "
            "the rest are not seen",
            f->known.n);
        f->ops->note(f->owner, text);
    }
    f->noted_full = true;
    return false;
}

/* The last mark that a change belongs to. News that came while it was there do; so does what has a
 * time of change that is later, whenever and however it was found. What only a walk finds gone may
 * have gone at any time: it is told to all. */
static uint64_t since_of(const struct files *f, const struct look *look, const struct state *now)
{
    uint64_t by_time = now->kind != FILES_NOTHING ? marks_at(f, now->ctime_ns)
                       : look->why & LOOK_DEEP    ? f->n_marks
                                                  : 0;

    return by_time > look->since ? by_time : look->since;
}

/* The one place where what is known becomes what is. */
static void settle(struct files *f, const char *path, const struct look *look,
                   const struct state *now)
{
    struct state *known = paths_find(&f->known, path), before = known ? *known : nothing;
    uint64_t      since = since_of(f, look, now);
    bool          same_directory = before.kind == FILES_DIRECTORY && now->kind == before.kind &&
                          now->ino == before.ino && now->dev == before.dev;

    if (before.kind == FILES_DIRECTORY && !same_directory && !forget_below(f, path, since)) {
        files_tree_look(f, path, look->why, look->since);
        return;
    }
    if (now->kind == FILES_NOTHING) {
        if (known)
            forget(f, path, since);
        return;
    }
    if (!known && !has_room(f, since))
        return;
    if (before.kind == FILES_DIRECTORY && !same_directory)
        passage_leave(f, path);
    if (before.wd > 0 && !same_directory) {
        watches_remove(f->watches, before.wd, path);
        before.wd = 0;
    }
    known = paths_put(&f->known, path);
    *known = *now;
    known->wd = before.wd;
    known->seen = f->passage.round;
    marks_grew(f, now->cost - before.cost, since);
    if (differs(&before, now) || ((look->why & LOOK_WRITTEN) && now->kind == FILES_REGULAR))
        marks_changed(f, path, &before, now, since);
    if (now->kind == FILES_DIRECTORY &&
        (!same_directory || (look->why & LOOK_DEEP) || (known->wd == 0 && !f->unwatched)))
        put(f, &f->dirs, path, look->why & LOOK_DEEP, same_directory ? look->since : since);
}

/* ---- a directory ---- */

static void watch(struct files *f, int dir_fd, const char *path, struct state *known)
{
    autofree char *was = NULL;
    int            wd;

    if (known->wd > 0 || f->unwatched)
        return;
    wd = f->watches ? watches_add(f->watches, dir_fd, path, &was) : -1;
    if (was) { /* it was moved here; perhaps it is back there before that is looked at */
        struct state *there = paths_find(&f->known, was);
        if (there && there->wd == wd)
            there->wd = 0;
        files_tree_look(f, was, 0, f->n_marks);
    }
    if (wd > 0) {
        known->wd = wd;
        return;
    }
    if (f->watches && errno != ENOSPC && errno != ENOMEM)
        return; /* it may not be read: then its content is not seen either */
    f->unwatched = true;
    if (!f->noted_unwatched && f->ops && f->ops->note)
        f->ops->note(f->owner, f->watches
                                   ? "there are more directories of files than can be watched (see "
                                     "fs.inotify.max_user_watches): each run walks through them"
                                   : "no inotify for the directory of files (see "
                                     "fs.inotify.max_user_instances): each run walks through it");
    f->noted_unwatched = true;
}

static void passage_begin(struct files *f, const char *path, const struct look *look)
{
    struct passage *p = &f->passage;
    struct state   *known = paths_find(&f->known, path);
    autofd int      fd = -1;

    if (!known || known->kind != FILES_DIRECTORY)
        return; /* no more */
    fd = files_tree_open(f, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOFOLLOW,
                         RESOLVE_NO_SYMLINKS);
    if (fd < 0 && !is_gone(errno)) /* made so by a run that it hides something from: told to that */
        marks_blind(f, marks_at(f, known->ctime_ns));
    if (fd < 0)
        return;
    watch(f, fd, path, known); /* first: what appears from now on has an event */
    p->dir = fdopendir(fd);
    if (!p->dir)
        return;
    take_fd(&fd);
    p->path = str_dup(path);
    p->look = *look;
    p->round++;
    if (look->why & LOOK_DEEP)
        f->deep++;
}

static char *path_in(const char *dir, const char *name)
{
    return *dir ? str_format("%s/%s", dir, name) : str_dup(name);
}

static void passage_entry(struct files *f, const char *name)
{
    struct passage *p = &f->passage;
    autofree char  *path = path_in(p->path, name);
    struct look     look = {p->look.why & LOOK_DEEP, p->look.since};
    struct stat     st;
    struct state    now;

    if (strlen(path) > FILES_PATH_MAX) {
        marks_blind(f, look.since);
        return;
    }
    if (fstatat(dirfd(p->dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* gone again; if it was known, the sweep finds that */
    now = state_of(&st);
    settle(f, path, &look, &now);
}

/* One of those that were known here: was it met? */
static void passage_sweep(struct files *f)
{
    struct passage *p = &f->passage;
    void           *known;
    const char     *path = p->swept ? paths_next(&f->known, p->swept, PATHS_PAST, &known)
                                    : paths_next(&f->known, p->path, PATHS_AFTER, &known);

    if (!path || !paths_is_below(path, p->path)) {
        passage_end(f);
        return;
    }
    if (((struct state *)known)->seen != p->round)
        files_tree_look(f, path, p->look.why & LOOK_DEEP, p->look.since);
    free(p->swept);
    p->swept = str_dup(path);
}

static void passage_step(struct files *f)
{
    struct passage *p = &f->passage;
    struct dirent  *d;

    if (p->read) {
        passage_sweep(f);
        return;
    }
    d = readdir(p->dir);
    if (!d)
        p->read = true;
    else if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
        passage_entry(f, d->d_name);
}

/* ---- turns ---- */

static bool look_at_news(struct files *f)
{
    struct look    look;
    autofree char *path = take(f, &f->news, &look);
    struct state   now;

    if (!path)
        return false;
    if (state_now(f, path, &now) < 0)
        marks_blind(f, look.since);
    else
        settle(f, path, &look, &now);
    return true;
}

static bool look_through_dirs(struct files *f)
{
    struct look    look;
    autofree char *path = NULL;

    if (f->passage.dir) {
        passage_step(f);
        return true;
    }
    path = take(f, &f->dirs, &look);
    if (path)
        passage_begin(f, path, &look);
    return path != NULL;
}

bool files_tree_step(struct files *f)
{
    bool (*const turns[])(struct files *) = {look_at_news, look_through_dirs};

    f->turn = !f->turn;
    return turns[f->turn](f) || turns[!f->turn](f);
}

bool files_tree_is_settled(const struct files *f)
{
    return f->news.n == 0 && f->dirs.n == 0 && !f->passage.dir;
}

void files_tree_done(struct files *f)
{
    passage_end(f);
    paths_done(&f->news);
    paths_done(&f->dirs);
    paths_done(&f->known);
}
