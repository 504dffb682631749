/* download - a tarball on its way into the store: a file in downloads/, named by its sha512.
 *
 * While it is incomplete it is `.HASH.part`, and whoever holds its lock (flock) is the one who
 * writes; others wait. What a killed or cut-off one left behind is the beginning for the next
 * (the line asks for the rest only); after a day without anybody asking it is swept
 * (store/downloads.h). */
#pragma once

#include <limits.h>

#include "fetch/line.h"

struct download {
    int  dir_fd; /* downloads/ */
    int  fd;     /* complete, at its beginning */
    char part[NAME_MAX + 1];
};

/* Opens, waits, fetches what is missing, verifies; shows progress on stderr. */
int download_get(struct line *l, const char *name, const struct release *release,
                 struct download *ret, struct err *e);

void download_unlock(struct download *d); /* complete: others may use it, too */
void download_drop(struct download *d);   /* it is not needed any more */
void download_leave(struct download *d);  /* stays for the next try */

/* The tarball as a file that stays, downloads/HASH.tgz; fetched when it is not there, or not
 * sound. */
int download_keep(struct line *l, const char *name, const struct release *release,
                  char ret_path[PATH_MAX], struct err *e);
