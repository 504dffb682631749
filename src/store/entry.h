/* entry - a directory of the store while it is written: beside its place, then renamed into it.
 *
 * What stands under its final name is complete, also after a power cut. The half-written directory
 * is itself the lock (flock): whoever holds it is the writer, others wait in entry_begin and then
 * find the entry done. A writer that was killed leaves a directory that nobody holds; entry_sweep
 * removes such ones, and entry_begin takes over its own.
 *
 * An entry that is there but does not pass the caller's check is written anew beside it; the two
 * are then exchanged in one step, so that at no moment there is none. */
#pragma once

#include <limits.h>

#include "base/err.h"

struct entry {
    int  parent_fd; /* borrowed */
    int  dir_fd;    /* empty, ours to fill */
    char name[NAME_MAX + 1];
};

typedef int entry_check(int dir_fd, struct err *e); /* -1: damaged, and how */

/* 0: fill ret->dir_fd, then commit or abort. 1: the entry is there already, and sound. -1: error.
 */
int  entry_begin(int parent_fd, const char *name, entry_check *check, struct entry *ret,
                 struct err *e);
int  entry_commit(struct entry *entry, struct err *e); /* on error it was aborted */
void entry_abort(struct entry *entry);
void entry_sweep(int parent_fd);

/* 1: there and sound, 0: not there, -1: damaged; the error says how. */
int entry_look(int parent_fd, const char *name, entry_check *check, struct err *e);
