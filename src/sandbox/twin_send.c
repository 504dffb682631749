/* Sending what changed here. A mark makes the watch look at all that happened until now; then a
 * list of paths that changed or are gone goes to send_tree; then init lists, and what was sent is
 * known.
 *
 * When it fails nothing is sure any more, and the next time all of it is sent. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/send_tree.h"
#include "sandbox/twin_private.h"

static void on_marked(void *owner, const struct files_row *rows, size_t n, bool cut)
{
    (void)rows, (void)n, (void)cut; /* what counts is that the watch has seen all of it */
    twin_go_on(owner);
}

static const struct files_mark_ops mark_ops = {NULL, on_marked};

void twin_send_look(struct twin *t)
{
    t->mark = files_mark(t->files, 0, &mark_ops, t);
    t->waiting = true;
    files_mark_end(t->mark);
}

static int add_path(struct buf *list, const char *path, struct err *e)
{
    if (buf_add(list, path, strlen(path) + 1) < 0)
        return err_set(e, ERR_LIMIT,
                       "the paths in FILES_DIR have more than %d MiB: too much for a daemon on "
                       "another machine",
                       TWIN_LIST_MAX >> 20);
    return 0;
}

static bool on_entry(void *owner, const struct files_entry *entry)
{
    struct twin  *t = owner;
    struct look   now = {entry->size, entry->mtime_ns};
    struct known *k;

    if (entry->kind != FILES_REGULAR && entry->kind != FILES_LINK)
        return true;
    twin_count(t, entry);
    k = paths_find(&t->known, entry->path);
    if (!k || !look_is_same(&k->here, &now)) {
        if (add_path(&t->changed, entry->path, &t->err) < 0)
            return false;
        k = paths_put(&t->known, entry->path);
        k->here = now;
        k->is_sent = true;
    }
    k->seen = t->round;
    return t->n <= TWIN_FILES_MAX;
}

static int list_gone(struct twin *t, struct err *e)
{
    struct known *k;

    for (const char *path = NULL; (path = twin_next_unseen(t, path, &k));)
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
    twin_go_on(t);
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

bool twin_send_changed(struct twin *t)
{
    struct send_tree tree = {t->dir, "/workspace/files", -1, "FILES_DIR"};
    autofd int       list = -1;

    files_mark_free(t->mark);
    t->mark = NULL;
    t->round++;
    files_list(t->files, NULL, on_entry, t);
    if (t->err.kind || check_size(t, &t->err) < 0 || list_gone(t, &t->err) < 0 ||
        t->changed.size + t->gone.size == 0)
        return false;
    list = write_list(t, &t->err);
    if (list < 0)
        return false;
    tree.list_fd = list;
    t->waiting = true;
    t->sending = send_tree_start(t->sandbox, &tree, on_sent, t);
    return true;
}

void twin_send_see(struct twin *t, const char *path, const struct look *now)
{
    struct known *k = paths_find(&t->known, path);

    if (k && k->is_sent) {
        k->inside = *now;
        k->is_sent = false;
    }
}

void twin_send_doubt(struct twin *t)
{
    void *value = NULL;

    for (const char *path = NULL; (path = paths_next(&t->known, path, PATHS_AFTER, &value));) {
        struct known *k = value;
        k->here = (struct look){-1, 0};
        k->is_sent = true;
    }
}
