/* Fetching what changed inside. Init lists; what is gone inside is removed here, unless it changed
 * here; then each file that changed is downloaded, one after the other, into a landing.
 *
 * What was sent and never listed inside may never have come there: nobody may read it, it lies too
 * deep. So its absence inside tells nothing, and it is not removed here. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "sandbox/download.h"
#include "sandbox/twin_private.h"

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

/* ---- what is inside ---- */

static void see_changed(struct twin *t, const char *path, const struct look *now, bool is_file)
{
    struct known *k = paths_find(&t->known, path);
    struct look  *wanted;

    if (k)
        k->seen = t->round;
    if (!is_file || (k && look_is_same(&k->inside, now)))
        return;
    wanted = paths_put(&t->wanted, path);
    *wanted = *now;
}

/* What is in one that lies too deep is not listed. */
static void see_directory(struct twin *t, const char *path)
{
    struct err deep = {0};

    paths_put(&t->dirs, path);
    if (depth_of(path) < TWIN_DEPTH_MAX)
        return;
    err_set(&deep, ERR_LIMIT, "it lies too deep");
    fail_file(t, path, &deep);
}

void twin_fetch_see(struct twin *t, const char *path, enum row_kind kind, const struct look *now)
{
    if (kind == ROW_DIR)
        see_directory(t, path);
    else
        see_changed(t, path, now, kind == ROW_FILE);
}

/* ---- one file ---- */

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
    twin_go_on(t);
}

static int check_wanted(const struct twin *t, const struct look *wanted, int64_t room,
                        struct err *e)
{
    struct stat st;

    if (depth_of(t->next) > TWIN_DEPTH_MAX)
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

bool twin_fetch_next(struct twin *t)
{
    void              *value = NULL;
    const struct look *wanted;
    autofree char     *path = NULL;
    int64_t            room;

    t->file_err = (struct err){0};
    t->next = paths_next(&t->wanted, t->next, PATHS_AFTER, &value);
    if (!t->next)
        return false;
    wanted = value;
    room = room_for(t, t->next);
    if (check_wanted(t, wanted, room, &t->file_err) < 0 ||
        landing_open(&t->landing, t->dir_fd, t->next, &t->file_err) < 0) {
        fail_file(t, t->next, &t->file_err);
        return true;
    }
    path = str_format(TWIN_PREFIX "%s", t->next);
    t->waiting = true;
    download_start_pieces(t->sandbox, path, (size_t)room, on_piece, on_download, t);
    return true;
}

/* ---- what is gone ---- */

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
        !look_is_same(&k->here, &(struct look){st.st_size, mtime_ns(&st)}) ||
        landing_remove(t->dir_fd, path, LANDING_FILE) < 0)
        return;
    t->n -= t->n > 0; /* the watch has bounds of its own */
    t->bytes -= st.st_size;
    remove_parents(t, path);
}

bool twin_fetch_remove_next(struct twin *t)
{
    struct known *k = NULL;
    /* Where not all is listed, what is not may be there. */
    const char *path = t->cut ? NULL : twin_next_unseen(t, t->gone_until, &k);

    if (!path)
        return false;
    remove_gone(t, path, k);
    free(t->gone_until);
    t->gone_until = str_dup(path);
    paths_remove(&t->known, t->gone_until);
    return true;
}
