#include "sandbox/watches.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { BUCKETS = 4096, PIECE = 65536 };

/* Not IN_OPEN, IN_ACCESS: reading is nobody's business, and there is much of it. */
static const uint32_t wanted = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY |
                               IN_CLOSE_WRITE | IN_ATTRIB | IN_EXCL_UNLINK | IN_ONLYDIR;

struct watch {
    struct watch *next;
    int           wd;
    char         *path;
};

struct watches {
    int           fd;
    size_t        n, max;
    struct watch *buckets[BUCKETS];
};

static struct watch **slot_of(struct watches *w, int wd)
{
    struct watch **at = &w->buckets[(unsigned)wd % BUCKETS];

    while (*at && (*at)->wd != wd)
        at = &(*at)->next;
    return at;
}

static void forget(struct watches *w, struct watch **at)
{
    struct watch *gone = *at;

    *at = gone->next;
    free(gone->path);
    free(gone);
    w->n--;
}

struct watches *watches_new(size_t max, struct err *e)
{
    struct watches *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    w->max = max;
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->fd >= 0)
        return w;
    err_sys(e, "inotify");
    free(w);
    return NULL;
}

void watches_free(struct watches *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (w->buckets[i])
            forget(w, &w->buckets[i]);
    fd_close(&w->fd);
    free(w);
}

int watches_fd(const struct watches *w)
{
    return w->fd;
}

int watches_add(struct watches *w, int dir_fd, const char *path, char **ret_was)
{
    char           link[32];
    struct watch **at;
    int            wd;

    if (w->n >= w->max) {
        errno = ENOSPC;
        return -1;
    }
    /* By descriptor: the path may lead elsewhere by now. */
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
    wd = inotify_add_watch(w->fd, link, wanted);
    if (wd < 0)
        return -1;
    at = slot_of(w, wd);
    if (!*at) {
        *at = calloc(1, sizeof **at);
        if (!*at)
            abort();
        (*at)->wd = wd;
        w->n++;
    }
    *ret_was = (*at)->path;
    (*at)->path = str_dup(path);
    if (*ret_was && strcmp(*ret_was, path) == 0) {
        free(*ret_was);
        *ret_was = NULL;
    }
    return wd;
}

void watches_remove(struct watches *w, int wd, const char *path)
{
    struct watch **at = slot_of(w, wd);

    if (!*at || strcmp((*at)->path, path) != 0)
        return;
    inotify_rm_watch(w->fd, wd); /* fails when the directory is gone: then so is the watch */
    forget(w, at);
}

static void tell(struct watches *w, const struct inotify_event *v, const struct watches_ops *ops,
                 void *owner)
{
    struct watch **at;

    if (v->mask & IN_Q_OVERFLOW) {
        ops->overflow(owner);
        return;
    }
    at = slot_of(w, v->wd);
    if (!*at)
        return; /* late news of a watch that was removed */
    if (v->mask & IN_IGNORED) {
        autofree char *path = str_dup((*at)->path);
        forget(w, at);
        ops->ended(owner, path, v->wd);
        return;
    }
    ops->event(owner, (*at)->path, v->len ? v->name : "", v->mask);
}

bool watches_take(struct watches *w, const struct watches_ops *ops, bool (*go_on)(void *owner),
                  void *owner)
{
    _Alignas(struct inotify_event) char piece[PIECE];
    int                                 queued = 0;

    if (ioctl(w->fd, FIONREAD, &queued) < 0)
        return true;
    while (queued > 0) {
        ssize_t n = read(w->fd, piece, sizeof piece);
        if (n <= 0)
            return true;
        for (char *p = piece; p < piece + n;) {
            const struct inotify_event *v = (const void *)p;
            tell(w, v, ops, owner);
            p += sizeof *v + v->len;
        }
        queued -= (int)n;
        if (queued > 0 && !go_on(owner))
            return false;
    }
    return true;
}
