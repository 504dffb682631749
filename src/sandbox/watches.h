/* watches - inotify over directories: one descriptor, and which directory a number stands for.
 *
 * A watch belongs to the directory itself, not to its path: when that is moved, its number goes
 * along. Whoever finds it elsewhere adds it again, and the number stands for the new path. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct watches;

struct watches *watches_new(size_t max, struct err *e); /* NULL: no inotify, e.g. too many users */
void            watches_free(struct watches *w);
int             watches_fd(const struct watches *w);

/* Its number; -1: refused, errno says why (ENOSPC: as many as there may be). *ret_was: the other
 * path that the number stood for until now, for the caller to free; NULL: none. */
int watches_add(struct watches *w, int dir_fd, const char *path, char **ret_was);
/* Only if the number still stands for that path. */
void watches_remove(struct watches *w, int wd, const char *path);

struct watches_ops {
    void (*event)(void *owner, const char *dir, const char *name, uint32_t mask); /* "": itself */
    void (*ended)(void *owner, const char *dir, int wd); /* by the kernel; the number is free */
    void (*overflow)(void *owner);                       /* events were lost */
};

/* Takes what the kernel has queued by now, in pieces of some 64 KiB as long as `go_on` wants. True:
 * that was all. */
bool watches_take(struct watches *w, const struct watches_ops *ops, bool (*go_on)(void *owner),
                  void *owner);
