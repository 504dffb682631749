/* Theory of operation. What both sides agreed on last is known, for each path: size and time here,
 * and inside. A side has changed a file when it is not as it was then. Here the watch tells
 * (files.h), after a mark has made it look at all that happened until now; inside, init lists.
 *
 * Sending: a list of paths that changed here goes to send_tree; then init lists, and what was sent
 * is known. Fetching: init lists; each file that changed inside is downloaded, one after the other,
 * into a landing; then what is gone inside is removed here, unless it changed here.
 *
 * What was sent and never listed inside may never have come there: nobody may read it, it lies too
 * deep. So its absence inside tells nothing, and it is not removed here.
 *
 * When sending fails nothing is sure any more, and the next time all of it is sent. */
#include "sandbox/twin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "sandbox/download.h"
#include "sandbox/landing.h"
#include "sandbox/listing.h"
#include "sandbox/paths.h"
#include "sandbox/send_tree.h"

enum {
    LIST_MAX = 1 << 23,
    DEPTH_MAX = 64,
    SLICE_MS = 5,      /* then others have their turn */
    FETCH_MS = 600000, /* then what is left waits for the next time */
};

static const char place[] = "/workspace/files", prefix[] = "files/";

static const struct listing_bounds bounds = {
    .entries = 2 * TWIN_FILES_MAX, .depth = DEPTH_MAX, .ms = 10000};

struct look { /* at a file, on one side */
    int64_t size, mtime_ns;
};

struct known {
    struct look here, inside;
    bool        is_sent; /* … and how it is inside is still to be seen */
    uint32_t    seen;    /* the round that met it last */
};

enum twin_state {
    TWIN_IDLE,
    SEND_LOOK, /* the watch catches up */
    SEND_LIST,
    SEND_SEEN,
    FETCH_LIST,
    FETCH_GONE,
    FETCH_EACH,
    TWIN_DONE,
};

struct twin {
    struct sandbox *sandbox;
    int64_t         max_bytes;
    struct paths    known; /* struct known */
    uint32_t        round;

    /* what is under way */
    enum twin_state    state;
    bool               waiting, cancelled;
    struct sending    *sending; /* or NULL */
    struct later       later;
    struct deadline    pause;
    struct files      *files;
    bool               is_fetch;
    struct files_mark *mark;
    const char        *dir;
    int                dir_fd;
    struct buf         changed, gone; /* paths, each ended by NUL */
    struct paths       wanted;        /* struct look: to be fetched */
    struct paths       dirs;          /* inside; no values */
    char              *gone_until;    /* of the known ones, the last that was looked at */
    const char        *next;          /* of the wanted ones, the last that was begun */
    struct landing     landing;
    size_t             n;     /* of files here, and … */
    int64_t            bytes; /* of all of them */
    int64_t            growth, quota_bytes;
    int64_t            until_ms;
    size_t             failed;
    bool               cut;
    struct err         err, file_err; /* file_err: of the one that is on its way */
    void (*done)(void *owner, const struct err *e);
    void *owner;
};

static bool is_same(const struct look *a, const struct look *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns;
}

static void go_on(struct twin *t)
{
    t->waiting = false;
    later_ask(&t->later);
}

/* All is sent again, and what is gone is removed inside again. */
static void doubt_all(struct twin *t)
{
    void *value = NULL;

    for (const char *path = NULL; (path = paths_next(&t->known, path, PATHS_AFTER, &value));) {
        struct known *k = value;
        k->here = (struct look){-1, 0};
        k->is_sent = true;
    }
}

/* ---- sending: what changed here ---- */

static void on_marked(void *owner, const struct files_row *rows, size_t n, bool cut)
{
    (void)rows, (void)n, (void)cut; /* what counts is that the watch has seen all of it */
    go_on(owner);
}

static const struct files_mark_ops mark_ops = {NULL, on_marked};

static void begin_look(struct twin *t)
{
    t->mark = files_mark(t->files, 0, &mark_ops, t);
    t->waiting = true;
    files_mark_end(t->mark);
}

static bool count_here(void *owner, const struct files_entry *entry)
{
    struct twin *t = owner;

    if (entry->kind == FILES_REGULAR || entry->kind == FILES_LINK) {
        t->n++;
        t->bytes += entry->size;
    }
    return true;
}

static int add_path(struct buf *list, const char *path, struct err *e)
{
    if (buf_add(list, path, strlen(path) + 1) < 0)
        return err_set(e, ERR_LIMIT,
                       "the paths in FILES_DIR have more than %d MiB: too much for a daemon on "
                       "another machine",
                       LIST_MAX >> 20);
    return 0;
}

static bool on_entry(void *owner, const struct files_entry *entry)
{
    struct twin  *t = owner;
    struct look   now = {entry->size, entry->mtime_ns};
    struct known *k;

    if (entry->kind != FILES_REGULAR && entry->kind != FILES_LINK)
        return true;
    count_here(t, entry);
    k = paths_find(&t->known, entry->path);
    if (!k || !is_same(&k->here, &now)) {
        if (add_path(&t->changed, entry->path, &t->err) < 0)
            return false;
        k = paths_put(&t->known, entry->path);
        k->here = now;
        k->is_sent = true;
    }
    k->seen = t->round;
    return t->n <= TWIN_FILES_MAX;
}

/* Those that were met in this round are passed by. */
static const char *next_unseen(const struct twin *t, const char *after, struct known **ret)
{
    void *value = NULL;

    while ((after = paths_next(&t->known, after, PATHS_AFTER, &value))) {
        *ret = value;
        if ((*ret)->seen != t->round)
            return after;
    }
    return NULL;
}

static int list_gone(struct twin *t, struct err *e)
{
    struct known *k;

    for (const char *path = NULL; (path = next_unseen(t, path, &k));)
        TRY(add_path(&t->gone, path, e));
    return 0;
}

/* They are gone on both sides. */
static void forget_gone(struct twin *t)
{
    for (size_t at = 0; at < t->gone.size; at += strlen((const char *)t->gone.data + at) + 1)
        paths_remove(&t->known, (const char *)t->gone.data + at);
}

static int check_size(const struct twin *t, struct err *e)
{
    if (t->n > TWIN_FILES_MAX)
        return err_set(e, ERR_LIMIT,
                       "FILES_DIR has more than %d files: too many for a daemon on another machine",
                       TWIN_FILES_MAX);
    if (t->bytes > t->max_bytes)
        return err_set(e, ERR_LIMIT,
                       "FILES_DIR has %lld MiB, which does not fit into the %lld MiB of a sandbox "
                       "on another machine (--disk)",
                       (long long)(t->bytes >> 20), (long long)(t->max_bytes >> 20));
    return 0;
}

static void on_sent(void *owner, const struct err *e)
{
    struct twin *t = owner;

    t->sending = NULL;
    t->err = *e;
    if (!e->kind)
        forget_gone(t);
    go_on(t);
}

/* Those that are gone come first: a directory may have taken a file's name. */
static int write_list(const struct twin *t, struct err *e)
{
    autofd int fd = memfd_create("list", MFD_CLOEXEC);

    if (fd < 0 || fd_write_all(fd, t->gone.data, t->gone.size) < 0 ||
        fd_write_all(fd, t->changed.data, t->changed.size) < 0)
        return err_sys(e, "write a list of files");
    lseek(fd, 0, SEEK_SET);
    return take_fd(&fd);
}

static void begin_send(struct twin *t)
{
    struct send_tree tree = {t->dir, place, -1, "FILES_DIR"};
    autofd int       list = -1;

    files_mark_free(t->mark);
    t->mark = NULL;
    t->round++;
    files_list(t->files, NULL, on_entry, t);
    if (t->err.kind || check_size(t, &t->err) < 0 || list_gone(t, &t->err) < 0)
        return;
    if (t->changed.size + t->gone.size == 0) {
        t->state = TWIN_DONE;
        return;
    }
    list = write_list(t, &t->err);
    if (list < 0)
        return;
    tree.list_fd = list;
    t->waiting = true;
    t->sending = send_tree_start(t->sandbox, &tree, on_sent, t);
}

/* ---- both: what is inside ---- */

static void on_listing(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                       bool cut);

static void begin_listing(struct twin *t)
{
    t->waiting = true;
    listing_start(t->sandbox, "files", &bounds, on_listing, t);
}

static void see_sent(struct twin *t, const char *path, const struct look *now)
{
    struct known *k = paths_find(&t->known, path);

    if (k && k->is_sent) {
        k->inside = *now;
        k->is_sent = false;
    }
}

static void see_changed(struct twin *t, const char *path, const struct look *now, bool is_file)
{
    struct known *k = paths_find(&t->known, path);
    struct look  *wanted;

    if (k)
        k->seen = t->round;
    if (!is_file || (k && is_same(&k->inside, now)))
        return;
    wanted = paths_put(&t->wanted, path);
    *wanted = *now;
}

static size_t depth_of(const char *path)
{
    size_t depth = 1;

    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

static void fail_file(struct twin *t, const char *path, const struct err *e)
{
    if (t->failed++ == 0)
        err_set(&t->err, e->kind, "\"%.80s\" was not brought back: %.120s", path, e->msg);
}

/* What is in one that lies too deep is not listed. */
static void see_directory(struct twin *t, const char *path)
{
    struct err deep = {0};

    paths_put(&t->dirs, path);
    if (t->state != FETCH_LIST || depth_of(path) < DEPTH_MAX)
        return;
    err_set(&deep, ERR_LIMIT, "it lies too deep");
    fail_file(t, path, &deep);
}

static void on_listing(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                       bool cut)
{
    struct twin *t = owner;

    t->err = *e;
    t->cut = cut;
    t->round++;
    for (size_t i = 0; i < n; i++) {
        const char *path = rows[i].path + strlen(prefix);
        struct look now = {(int64_t)rows[i].size, rows[i].mtime_ns};
        if (!str_starts(rows[i].path, prefix) || !*path)
            continue;
        if (rows[i].kind == ROW_DIR)
            see_directory(t, path);
        else if (t->state == SEND_SEEN)
            see_sent(t, path, &now);
        else
            see_changed(t, path, &now, rows[i].kind == ROW_FILE);
    }
    go_on(t);
}

/* ---- fetching: one file ---- */

static bool on_piece(void *owner, const uint8_t *bytes, size_t size)
{
    struct twin *t = owner;

    if (t->cancelled)
        err_set(&t->file_err, ERR_CANCELLED, "cancelled");
    else if (clock_ms() > t->until_ms)
        err_set(&t->file_err, ERR_TIMEOUT, "it takes too long");
    else
        landing_write(&t->landing, bytes, size, &t->file_err);
    return !t->file_err.kind;
}

static bool is_here(const struct twin *t, const char *path, struct stat *ret)
{
    return landing_look(t->dir_fd, path, ret) == 0 && !S_ISDIR(ret->st_mode);
}

/* Without what it replaces. */
static int64_t room_for(const struct twin *t, const char *path)
{
    struct stat st;
    bool        is_there = is_here(t, path, &st);
    int64_t     room = t->max_bytes - t->bytes, quota = t->quota_bytes - t->growth;

    if (is_there)
        room += st.st_size;
    quota += is_there && S_ISREG(st.st_mode) ? st.st_size : -FILES_NAME_COST;
    return t->quota_bytes > 0 && quota < room ? quota : room;
}

static int64_t mtime_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static int land(struct twin *t, const char *path, size_t size, uint64_t whole, struct err *e)
{
    struct stat   st, old;
    bool          is_there = is_here(t, path, &old);
    struct known *k;

    if (whole > size)
        return err_set(e, ERR_LIMIT, "there is no room for so much");
    TRY(landing_commit(&t->landing, t->dir_fd, &st, e));
    t->n += !is_there;
    t->bytes += st.st_size - (is_there ? old.st_size : 0);
    t->growth += st.st_size;
    t->growth += is_there && S_ISREG(old.st_mode) ? -old.st_size : FILES_NAME_COST;
    k = paths_put(&t->known, path);
    k->here = (struct look){st.st_size, mtime_ns(&st)};
    k->inside = *(const struct look *)paths_find(&t->wanted, path);
    k->seen = t->round;
    k->is_sent = false;
    return 0;
}

static void on_download(void *owner, const struct err *e, const uint8_t *bytes, size_t size,
                        uint64_t whole)
{
    struct twin *t = owner;

    (void)bytes; /* each piece was taken */
    if (!t->file_err.kind && e->kind)
        t->file_err = *e;
    if (!t->file_err.kind)
        land(t, t->next, size, whole, &t->file_err);
    landing_drop(&t->landing);
    if (t->file_err.kind && t->file_err.kind != ERR_NOT_FOUND) /* else it is gone again */
        fail_file(t, t->next, &t->file_err);
    go_on(t);
}

static int check_wanted(const struct twin *t, const struct look *wanted, int64_t room,
                        struct err *e)
{
    struct stat st;

    if (depth_of(t->next) > DEPTH_MAX)
        return err_set(e, ERR_LIMIT, "it lies too deep");
    if (t->n >= TWIN_FILES_MAX && !is_here(t, t->next, &st))
        return err_set(e, ERR_LIMIT, "there are %d files, and may not be more", TWIN_FILES_MAX);
    if (wanted->size < 0 || wanted->size > room)
        return err_set(e, ERR_LIMIT, "there is no room for so much");
    if (clock_ms() > t->until_ms)
        return err_set(e, ERR_TIMEOUT, "it takes too long");
    if (!sandbox_is_well(t->sandbox))
        return err_set(e, ERR_UNAVAILABLE, "the sandbox ends");
    return 0;
}

static void begin_next(struct twin *t)
{
    void              *value = NULL;
    const struct look *wanted;
    autofree char     *path = NULL;
    int64_t            room;

    t->file_err = (struct err){0};
    t->next = paths_next(&t->wanted, t->next, PATHS_AFTER, &value);
    if (!t->next) {
        t->state = TWIN_DONE;
        return;
    }
    wanted = value;
    room = room_for(t, t->next);
    if (check_wanted(t, wanted, room, &t->file_err) < 0 ||
        landing_open(&t->landing, t->dir_fd, t->next, &t->file_err) < 0) {
        fail_file(t, t->next, &t->file_err);
        return;
    }
    path = str_format("%s%s", prefix, t->next);
    t->waiting = true;
    download_start_pieces(t->sandbox, path, (size_t)room, on_piece, on_download, t);
}

/* ---- fetching: what is gone ---- */

static void remove_parents(struct twin *t, const char *path)
{
    autofree char *dir = str_dup(path);
    char          *slash;

    while ((slash = strrchr(dir, '/'))) {
        *slash = '\0';
        if (paths_find(&t->dirs, dir) || landing_remove(t->dir_fd, dir, LANDING_DIRECTORY) < 0)
            return;
    }
}

static void remove_gone(struct twin *t, const char *path, const struct known *k)
{
    struct stat st;

    if (k->is_sent || !is_here(t, path, &st) ||
        !is_same(&k->here, &(struct look){st.st_size, mtime_ns(&st)}) ||
        landing_remove(t->dir_fd, path, LANDING_FILE) < 0)
        return;
    t->n -= t->n > 0; /* the watch has bounds of its own */
    t->bytes -= st.st_size;
    remove_parents(t, path);
}

static void next_gone(struct twin *t)
{
    struct known *k = NULL;
    /* Where not all is listed, what is not may be there. */
    const char *path = t->cut ? NULL : next_unseen(t, t->gone_until, &k);

    if (!path) {
        t->state = FETCH_EACH;
        return;
    }
    remove_gone(t, path, k);
    free(t->gone_until);
    t->gone_until = str_dup(path);
    paths_remove(&t->known, t->gone_until);
}

/* ---- the step ---- */

static void conclude(struct twin *t)
{
    if (!t->is_fetch && t->err.kind)
        doubt_all(t);
    if (t->is_fetch && t->cut && !t->err.kind)
        err_set(&t->err, ERR_LIMIT,
                "/workspace/files has more than is looked at: not all of it was brought back");
    if (t->failed > 1) {
        struct err first = t->err;
        err_set(&t->err, first.kind, "%.200s (and %zu more)", first.msg, t->failed - 1);
    }
    if (t->mark)
        files_mark_free(t->mark);
    t->mark = NULL;
    fd_close(&t->dir_fd);
    free(t->gone_until);
    paths_done(&t->wanted);
    paths_done(&t->dirs);
    buf_done(&t->changed);
    buf_done(&t->gone);
}

static void finish(struct twin *t)
{
    conclude(t);
    t->state = TWIN_IDLE;
    t->waiting = true;
    t->done(t->owner, &t->err);
    if (!t->sandbox)
        twin_free(t);
}

static void step(void *owner)
{
    struct twin *t = owner;
    int64_t      end_ms = clock_ms() + SLICE_MS;

    while (!t->waiting) {
        if (clock_ms() > end_ms) { /* what is asked for later comes before what others wait for */
            deadline_set(&t->pause, 0);
            return;
        }
        if (!t->sandbox && !t->err.kind)
            err_set(&t->err, ERR_UNAVAILABLE, "the sandbox is gone");
        if (t->cancelled && !t->err.kind)
            err_set(&t->err, ERR_CANCELLED, "cancelled");
        if (!t->sandbox || t->cancelled || (t->err.kind && t->failed == 0))
            t->state = TWIN_DONE;
        switch (t->state) {
        case SEND_LOOK:
            t->state = SEND_LIST;
            begin_send(t);
            break;
        case SEND_LIST:
            t->state = SEND_SEEN;
            begin_listing(t);
            break;
        case FETCH_LIST:
            t->state = FETCH_GONE;
            files_list(t->files, NULL, count_here, t);
            break;
        case FETCH_GONE:
            next_gone(t);
            break;
        case FETCH_EACH:
            begin_next(t);
            break;
        case SEND_SEEN:
        case TWIN_IDLE:
        case TWIN_DONE:
            finish(t);
            return;
        }
    }
}

/* ---- beginning and end ---- */

static void begin(struct twin *t, struct files *files, const char *dir,
                  void (*done)(void *owner, const struct err *e), void *owner)
{
    t->files = files;
    t->dir = dir;
    t->done = done;
    t->owner = owner;
    t->err = (struct err){0};
    t->bytes = t->growth = 0;
    t->n = t->failed = 0;
    t->cancelled = false;
    t->gone_until = NULL;
    t->next = NULL;
    t->cut = false;
    t->landing = landing_none;
    buf_init(&t->changed, LIST_MAX);
    buf_init(&t->gone, LIST_MAX);
    paths_init(&t->wanted, sizeof(struct look));
    paths_init(&t->dirs, 1);
    t->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->dir_fd < 0)
        err_sys(&t->err, "FILES_DIR %.150s", dir);
}

void twin_send(struct twin *t, struct files *files, const char *dir,
               void (*done)(void *owner, const struct err *e), void *owner)
{
    begin(t, files, dir, done, owner);
    t->is_fetch = false;
    t->state = SEND_LOOK;
    if (t->err.kind)
        go_on(t);
    else
        begin_look(t);
}

void twin_fetch(struct twin *t, struct files *files, const char *dir, int64_t quota_bytes,
                void (*done)(void *owner, const struct err *e), void *owner)
{
    begin(t, files, dir, done, owner);
    t->is_fetch = true;
    t->quota_bytes = quota_bytes;
    t->until_ms = clock_ms() + FETCH_MS;
    t->state = FETCH_LIST;
    if (t->err.kind)
        go_on(t);
    else
        begin_listing(t);
}

struct twin *twin_new(struct sandbox *s, int64_t max_bytes)
{
    struct twin *t = calloc(1, sizeof *t);

    if (!t)
        abort();
    *t = (struct twin){.sandbox = s, .max_bytes = max_bytes, .waiting = true, .dir_fd = -1};
    paths_init(&t->known, sizeof(struct known));
    later_init(&t->later, sandbox_base(s), step, t);
    deadline_init(&t->pause, sandbox_base(s), step, t);
    return t;
}

void twin_cancel(struct twin *t)
{
    t->cancelled = t->state != TWIN_IDLE;
    if (t->sending)
        send_tree_cancel(t->sending);
}

void twin_free(struct twin *t)
{
    if (!t)
        return;
    t->sandbox = NULL;
    if (t->state != TWIN_IDLE)
        return; /* what is under way ends by itself, and then this */
    paths_done(&t->known);
    later_done(&t->later);
    deadline_done(&t->pause);
    free(t);
}
