/* files - a directory of the user's that sandboxes write to: what is in it, and what changes.
 *
 * All of it is known from the start and followed by inotify, so that a run costs what it changes,
 * not what is there. A *mark* is one run: what changed since it began. Names are bytes without NUL;
 * whoever writes here is hostile, so no symbolic link is ever followed out, nothing but regular
 * files is read, and what is remembered is bounded.
 *
 * Created, updated, deleted compare the end of a run with its beginning: what came and went in
 * between is nothing, a rename is one deleted and one created. Updated means written to (the same
 * bytes, too), replaced, or given another time of modification; a changed mode or owner is not.
 * Directories are no rows of their own; links, FIFOs and sockets are, as what they are.
 *
 * What inotify does not see: other machines' changes on a network filesystem. What counts for no
 * quota: files that were deleted and are still held open, until their processes end. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct files;
struct files_mark;

enum files_change { FILES_CREATED, FILES_UPDATED, FILES_DELETED };
enum files_kind { FILES_NOTHING, FILES_REGULAR, FILES_LINK, FILES_DIRECTORY, FILES_OTHER };

const char *files_change_name(enum files_change change); /* "created", … */

struct files_row {
    const char       *path; /* relative; any bytes but NUL */
    enum files_change change;
    enum files_kind   kind; /* what it is now; of a deleted one, what it was */
    int64_t           size; /* a link's is that of its text; 0: deleted */
    const char       *mime_type;
};

struct files_ops {                                                            /* may be NULL */
    void (*changed)(void *owner, const char *path, enum files_change change); /* soon after */
    void (*note)(void *owner, const char *sentence); /* for the log: watches ran out, events lost */
};

struct files_limits {
    size_t watched; /* directories; when there are more, each run costs a walk */
    size_t known;   /* entries of all kinds that are remembered */
    size_t rows;    /* of one run */
};
extern const struct files_limits files_limits; /* what NULL stands for */

/* Walks through all of it before it returns: about twice what find takes. Ops are called from the
 * loop, and must not close. */
struct files *files_open(struct event_base *base, const char *dir,
                         const struct files_limits *limits, const struct files_ops *ops,
                         void *owner, struct err *e);
void          files_close(struct files *f); /* after the last mark was freed */

/* That path still leads to the directory which is followed: nobody removed or replaced it. */
bool files_is_at(const struct files *f, const char *dir);

/* ---- one run ---- */

/* The rows are sorted as in paths.h and live as long as the mark. `cut`: there were more, or places
 * that could not be looked at. */
struct files_mark_ops {
    void (*over_quota)(void *owner); /* it grew by more; at most once */
    void (*done)(void *owner, const struct files_row *rows, size_t n, bool cut);
};

/* Any number at a time; each gets all changes, whoever made them. quota_bytes 0: none. What counts
 * is the space that is taken or spoken for, whichever is more, and FILES_NAME_COST for each name.
 */
enum { FILES_NAME_COST = 512 };
struct files_mark *files_mark(struct files *f, int64_t quota_bytes,
                              const struct files_mark_ops *ops, void *owner);
int64_t            files_mark_growth(const struct files_mark *m); /* negative: it shrank */
/* Once: what happened until now is looked at, then `done` comes from the loop, after two seconds at
 * the latest. */
void files_mark_end(struct files_mark *m);
void files_mark_free(struct files_mark *m); /* at any time, in its own ops as well */

/* ---- what is there ---- */

/* At most `max` bytes of a regular file, links followed as long as they stay below; how long the
 * whole is. Room in `ret` is the caller's to give. */
int files_read(struct files *f, const char *path, size_t max, struct buf *ret, uint64_t *ret_whole,
               struct err *e);

struct files_entry {
    const char     *path;
    enum files_kind kind;
    int64_t         size;
    int64_t         mtime_ns; /* since 1970 */
};

/* What is known, without directories, sorted, behind `after` (NULL: from the first), until `each`
 * says false. It must not wait. */
void files_list(const struct files *f, const char                                *after,
                bool (*each)(void *owner, const struct files_entry *entry), void *owner);
bool files_find(const struct files *f, const char *path, struct files_entry *ret);
