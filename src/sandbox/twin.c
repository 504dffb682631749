/* Theory of operation. What both sides agreed on last is known, for each path: size and time here,
 * and inside. A side has changed a file when it is not as it was then. Here the watch tells
 * (files.h); inside, init lists. How what changed here is sent is twin_send.c's, how what changed
 * inside is fetched twin_fetch.c's; the step, which alone changes the state, is here. */
#include "sandbox/twin.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/send_tree.h"
#include "sandbox/twin_private.h"

enum {
    SLICE_MS = 5,      /* then others have their turn */
    FETCH_MS = 600000, /* then what is left waits for the next time */
};

static const struct listing_bounds bounds = {
    .entries = 2 * TWIN_FILES_MAX, .depth = TWIN_DEPTH_MAX, .ms = 10000};

void twin_go_on(struct twin *t)
{
    t->waiting = false;
    later_ask(&t->later);
}

/* ---- here ---- */

bool twin_count(void *owner, const struct files_entry *entry)
{
    struct twin *t = owner;

    if (entry->kind == FILES_REGULAR || entry->kind == FILES_LINK) {
        t->n++;
        t->bytes += entry->size;
    }
    return true;
}

const char *twin_next_unseen(const struct twin *t, const char *after, struct known **ret)
{
    void *value = NULL;

    while ((after = paths_next(&t->known, after, PATHS_AFTER, &value))) {
        *ret = value;
        if ((*ret)->seen != t->round)
            return after;
    }
    return NULL;
}

/* ---- inside ---- */

static void on_listing(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                       bool cut)
{
    struct twin *t = owner;

    t->err = *e;
    t->cut = cut;
    t->round++;
    for (size_t i = 0; i < n; i++) {
        const char *path = rows[i].path + strlen(TWIN_PREFIX);
        struct look now = {(int64_t)rows[i].size, rows[i].mtime_ns};
        if (!str_starts(rows[i].path, TWIN_PREFIX) || !*path)
            continue;
        if (t->is_fetch)
            twin_fetch_see(t, path, rows[i].kind, &now);
        else if (rows[i].kind != ROW_DIR)
            twin_send_see(t, path, &now);
    }
    twin_go_on(t);
}

static void begin_listing(struct twin *t)
{
    t->waiting = true;
    listing_start(t->sandbox, "files", &bounds, on_listing, t);
}

/* ---- the step ---- */

static void conclude(struct twin *t)
{
    if (!t->is_fetch && t->err.kind)
        twin_send_doubt(t);
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
            t->state = twin_send_changed(t) ? SEND_LIST : TWIN_DONE;
            break;
        case SEND_LIST:
            t->state = SEND_SEEN;
            begin_listing(t);
            break;
        case FETCH_LIST:
            t->state = FETCH_GONE;
            files_list(t->files, NULL, twin_count, t);
            break;
        case FETCH_GONE:
            if (!twin_fetch_remove_next(t))
                t->state = FETCH_EACH;
            break;
        case FETCH_EACH:
            if (!twin_fetch_next(t))
                t->state = TWIN_DONE;
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
    buf_init(&t->changed, TWIN_LIST_MAX);
    buf_init(&t->gone, TWIN_LIST_MAX);
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
        twin_go_on(t);
    else
        twin_send_look(t);
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
        twin_go_on(t);
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
