/* entry - a directory of the store while it is written: beside its place, then renamed into it.
 *
 * What stands under its final name is complete, also after a power cut. The half-written directory
 * is itself the lock (flock): whoever holds it is the writer, others wait in entry_begin and then
 * find the entry done. A writer that was killed leaves a directory that nobody holds; entry_sweep
 * removes such ones, and entry_begin takes over its own.
 *
 * An entry that is there but does not pass the caller's check is written anew beside it; the two
 * are then exchanged in one step, so that at no moment there is none.
 *
 * Who uses an entry holds a shared lock on its directory; nothing is removed without an exclusive
 * one. What must go from its name while somebody holds it gets another name (.NAME.NUMBER.old), and
 * goes with a later entry_sweep. Where there are no locks, nothing in place is ever removed. The
 * directory's own time of change is the time of its last use, to a minute. */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "base/err.h"

struct entry {
    int  parent_fd; /* borrowed */
    int  dir_fd;    /* empty, ours to fill */
    char name[NAME_MAX + 1];
};

typedef int entry_check(int dir_fd, const void *arg, struct err *e); /* -1: damaged, and how */

/* 0: fill ret->dir_fd, then commit or abort. 1: the entry is there already, and sound. -1: error.
 */
int entry_begin(int parent_fd, const char *name, entry_check *check, const void *arg,
                struct entry *ret, struct err *e);
/* The same for who must not wait: 2: another one writes it. */
int entry_begin_now(int parent_fd, const char *name, entry_check *check, const void *arg,
                    struct entry *ret, struct err *e);
int entry_commit(struct entry *entry, struct err *e); /* on error it was aborted */
/* The same before it is on the disk, for who can tell afterwards what a power cut left of it. Held
 * as by entry_hold; dir_fd stays the caller's. */
int  entry_place(struct entry *entry, struct err *e);
void entry_abort(struct entry *entry);
void entry_sweep(int parent_fd);

/* 1: there and sound, 0: not there, -1: damaged; the error says how. */
int entry_look(int parent_fd, const char *name, entry_check *check, const void *arg, struct err *e);

/* Keeps it from being removed while the descriptor that is returned is open, and notes that it was
 * used now. ERR_NOT_FOUND: it is not there (any more). */
int     entry_hold(int parent_fd, const char *name, struct err *e);
int64_t entry_used_ms(int dir_fd); /* when it was held last, since 1970 */

/* 1: removed. 0: somebody holds it, or it is not there. */
int entry_remove(int parent_fd, const char *name);
