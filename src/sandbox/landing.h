/* landing - a file that comes out of a sandbox, on its way into a directory of this machine.
 *
 * It appears under its name whole, replacing a file or a link that had it, or not at all; it
 * belongs to the directory's owner, and has the mode of the file that it replaces. Paths are
 * relative; they were made by hostile code, and so, perhaps, was what lies in the directory: no
 * link is followed, nothing is ever written outside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

struct landing {
    int  parent_fd, fd; /* -1: there is none on its way */
    char name[256];
    char beside[48]; /* its name meanwhile; "": it has none */
};

extern const struct landing landing_none;

/* No component may be empty, `.` or `..`; directories on the way are made. */
int landing_open(struct landing *l, int dir_fd, const char *path, struct err *e);
int landing_write(struct landing *l, const void *bytes, size_t size, struct err *e);
/* The end, well or not; ret_st: what it is then. */
int  landing_commit(struct landing *l, int dir_fd, struct stat *ret_st, struct err *e);
void landing_drop(struct landing *l);

/* What has that name; -1: nothing. */
int landing_look(int dir_fd, const char *path, struct stat *ret);
/* Removes a file, or an empty directory; -1: it is something else, or not there. */
enum landing_kind { LANDING_FILE, LANDING_DIRECTORY };
int landing_remove(int dir_fd, const char *path, enum landing_kind kind);
