/* Theory of operation. Init is one thread, and a tree may have a million entries: so a scan is done
 * in slices between two polls. What it keeps from one to the next is the directory that is being
 * read and the paths of those that wait, in the order they were found. Each is opened anew from the
 * top (beneath.h), because code moves things meanwhile, and because a descriptor a level would let
 * a deep tree use all of them up.
 *
 * Bounds: entries and levels as the server asked, SCAN_BYTES_MAX of rows, SCAN_QUEUE_MAX of waiting
 * paths, PATH_MAX of one. What meets one makes the listing `cut`; so does a directory that cannot
 * be opened. Time is the server's to bound: it may RESET at any moment. */
#include "init/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "init/beneath.h"
#include "init/outbox.h"
#include "init/world.h"
#include "pipe/message.h"

enum {
    SLICE = 128, /* entries, some hundred microseconds */
    SCAN_QUEUE_MAX = 1 << 20,
};

static struct scan {
    DIR       *dir;   /* which is being read, or NULL */
    char      *path;  /* its own; empty: the workspace itself */
    struct buf queue; /* paths that wait, each ended by NUL; from `next` on */
    size_t     next;
    size_t     bytes_left;
    uint32_t   id;  /* 0: the place is free */
    unsigned   top; /* level of the directory that was asked for */
    uint32_t   depth, entries_left;
    bool       cut;
} scans[SCANS_MAX];

static struct scan *find_scan(uint32_t id)
{
    for (size_t i = 0; i < SCANS_MAX; i++)
        if (scans[i].id == id)
            return &scans[i];
    return NULL;
}

bool scan_has(uint32_t channel)
{
    return channel != 0 && find_scan(channel);
}

static void leave_directory(struct scan *s)
{
    if (s->dir)
        closedir(s->dir);
    s->dir = NULL;
    free(s->path);
    s->path = NULL;
}

static void close_scan(struct scan *s)
{
    leave_directory(s);
    buf_done(&s->queue);
    s->id = 0;
}

static unsigned level_of(const char *path)
{
    unsigned n = *path != '\0';

    for (; *path; path++)
        n += *path == '/';
    return n;
}

static int enter_directory(struct scan *s, const char *path, struct err *e)
{
    autofd int root = world_open_workspace(e), fd = -1;

    TRY(root);
    fd = beneath_open(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, e);
    TRY(fd);
    s->dir = fdopendir(fd);
    if (!s->dir)
        return err_sys(e, "open %.120s", path);
    take_fd(&fd);
    s->path = strdup(path);
    if (!s->path)
        abort();
    return 0;
}

/* ---- frames ---- */

int scan_open(const struct frame *f, struct err *e)
{
    struct message_scan m;
    struct scan        *s = find_scan(0);
    struct err          failure = {0};

    TRY(message_unpack_scan(f, &m, e));
    if (!s) {
        err_set(&failure, ERR_LIMIT, "%d directories are being scanned already", SCANS_MAX);
        outbox_send_error(f->channel, &failure);
        return 0;
    }
    *s = (struct scan){.id = f->channel,
                       .top = level_of(m.path),
                       .depth = m.depth,
                       .entries_left = m.entries,
                       .bytes_left = SCAN_BYTES_MAX};
    buf_init(&s->queue, SCAN_QUEUE_MAX);
    if (enter_directory(s, m.path, &failure) < 0) {
        outbox_send_error(f->channel, &failure);
        close_scan(s);
    }
    return 0;
}

int scan_handle(const struct frame *f, struct err *e)
{
    if (f->type != FRAME_RESET)
        return err_set(e, ERR_INVALID, "%s frame on channel %u, which is a scan",
                       frame_type_name(f->type), f->channel);
    close_scan(find_scan(f->channel));
    return 0;
}

/* ---- a slice ---- */

static void send_rows(const struct scan *s, struct buf *rows)
{
    if (rows->size > 0)
        outbox_send(FRAME_ROWS, s->id, 0, rows->data, rows->size);
    rows->size = 0;
}

static void finish_scan(struct scan *s, struct buf *rows)
{
    autobuf struct buf b;

    buf_init(&b, 4);
    send_rows(s, rows);
    message_pack_scanned(&b, &(struct message_scanned){s->cut});
    outbox_send(FRAME_SCANNED, s->id, 0, b.data, b.size);
    close_scan(s);
}

static enum row_kind kind_of(mode_t mode)
{
    return S_ISREG(mode)   ? ROW_FILE
           : S_ISDIR(mode) ? ROW_DIR
           : S_ISLNK(mode) ? ROW_LINK
                           : ROW_OTHER;
}

/* -1: there was no place for it. */
static int add_row(struct scan *s, struct buf *rows, const struct message_row *row)
{
    autobuf struct buf b;

    buf_init(&b, PATH_MAX + 64);
    message_pack_row(&b, row);
    if (s->entries_left == 0 || s->bytes_left < b.size)
        return -1;
    s->entries_left--;
    s->bytes_left -= b.size;
    if (rows->size + b.size > rows->max)
        send_rows(s, rows);
    return buf_add(rows, b.data, b.size);
}

/* A directory that was found waits for its turn, unless it is too deep. */
static void queue_directory(struct scan *s, const char *path)
{
    if (level_of(path) - s->top < s->depth && buf_add(&s->queue, path, strlen(path) + 1) < 0)
        s->cut = true;
}

static void take_entry(struct scan *s, struct buf *rows, const char *name)
{
    char        path[PATH_MAX];
    struct stat st;
    int         n = snprintf(path, sizeof path, "%s%s%s", s->path, *s->path ? "/" : "", name);

    if (n >= (int)sizeof path) {
        s->cut = true;
        return;
    }
    if (fstatat(dirfd(s->dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* it is gone since */
    struct message_row row = {kind_of(st.st_mode), (uint64_t)st.st_size,
                              st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec, path};
    if (add_row(s, rows, &row) < 0) {
        s->cut = true;
        finish_scan(s, rows);
    } else if (row.kind == ROW_DIR) {
        queue_directory(s, path);
    }
}

static void enter_next(struct scan *s, struct buf *rows)
{
    const char *path;

    if (s->next == s->queue.size) {
        finish_scan(s, rows);
        return;
    }
    path = (const char *)s->queue.data + s->next;
    s->next += strlen(path) + 1;
    if (enter_directory(s, path, NULL) < 0)
        s->cut = true;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void scan_slice(struct scan *s)
{
    autobuf struct buf rows;

    buf_init(&rows, FRAME_DATA_MAX);
    for (int i = 0; i < SLICE && s->id; i++) {
        const struct dirent *entry = s->dir ? readdir(s->dir) : NULL;

        if (entry && !is_dots(entry->d_name)) {
            take_entry(s, &rows, entry->d_name);
        } else if (!entry) {
            leave_directory(s);
            enter_next(s, &rows);
        }
    }
    if (s->id)
        send_rows(s, &rows);
}

bool scan_is_busy(void)
{
    for (size_t i = 0; i < SCANS_MAX; i++)
        if (scans[i].id)
            return true;
    return false;
}

void scan_step(void)
{
    for (size_t i = 0; i < SCANS_MAX; i++)
        if (scans[i].id)
            scan_slice(&scans[i]);
}
