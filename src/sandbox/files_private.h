/* files_private - what the files_*.c share. files.c has the loop, files_tree.c finds out what is
 * there, files_mark.c keeps the accounts of runs. */
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include "loop/deadline.h"
#include "loop/later.h"
#include "sandbox/files.h"
#include "sandbox/paths.h"
#include "sandbox/watches.h"

enum { FILES_PATH_MAX = 4095 };

/* One entry as it was seen. */
struct state {
    enum files_kind kind;
    int64_t         size, cost; /* cost: what it counts for a quota */
    int64_t         mtime_ns, ctime_ns;
    uint64_t        dev, ino;
    int             wd;   /* of a directory: its watch; 0: none */
    uint32_t        seen; /* the last look through its directory that met it */
};

/* Why a path is to be looked at. */
enum {
    LOOK_WRITTEN = 1, /* the kernel told of a write: updated, even if nothing can be seen of it */
    LOOK_DEEP = 2,    /* a directory: at all below, since events were lost or there are none */
};
struct look {
    unsigned why;
    uint64_t since; /* number of the last mark that was there when the news came */
};

/* The directory that is being looked through, in slices. */
struct passage {
    DIR        *dir; /* NULL: none */
    char       *path;
    struct look look;
    bool        read;  /* to its end: what was known here is being compared */
    char       *swept; /* up to here */
    uint32_t    round;
};

struct files {
    struct files_limits     limits;
    const struct files_ops *ops;
    void                   *owner;
    int                     dir_fd;
    struct watches         *watches; /* NULL: this machine has none left */
    struct event           *readable;
    struct later            later;
    struct deadline         pause;

    struct paths   known; /* struct state */
    struct paths   news;  /* struct look: paths to be looked at */
    struct paths   dirs;  /* struct look: directories to be looked through */
    size_t         deep;  /* of both, and the passage, with LOOK_DEEP */
    bool           turn;  /* whose it was */
    struct passage passage;

    bool    opened;    /* the first walk is over: changes are changes */
    bool    unwatched; /* there are directories without a watch: runs walk */
    bool    lost;      /* events were lost: a walk is due */
    bool    stale;     /* one is due because of what is not watched */
    bool    behind;    /* not all events were taken */
    bool    in_slice;
    bool    retrying; /* the walk that is going on tries to watch what was not */
    bool    noted_unwatched;
    bool    noted_lost; /* said in the log since the last quiet moment */
    bool    noted_full;
    int64_t slice_end_ms;
    int64_t walked_ms; /* when the last walk was begun */

    uint64_t           lost_since; /* as in struct look */
    struct files_mark *marks;      /* newest first */
    uint64_t           n_marks;    /* ever made */
};

/* ---- files.c ---- */

void files_settle(struct files *f);     /* takes all news, looks as far as a slice goes */
void files_settle_all(struct files *f); /* asks the loop to, to the end: a mark is ending */

/* ---- files_read.c ---- */

/* A descriptor, or -1. */
int files_open_regular(const struct files *f, const char *path, uint64_t *ret_size, struct err *e);

/* ---- files_tree.c ---- */

/* Adds to the news. */
void files_tree_look(struct files *f, const char *path, unsigned why, uint64_t since);
/* One look; false: there is nothing to look at. */
bool files_tree_step(struct files *f);
bool files_tree_is_settled(const struct files *f);
void files_tree_done(struct files *f);
int  files_tree_open(const struct files *f, const char *path, int flags, uint64_t resolve);

/* ---- files_mark.c ---- */

/* The number of the newest mark that was there at that time; 0: none. */
uint64_t marks_at(const struct files *f, int64_t realtime_ns);
/* For all up to number `since`; `before` or `after` may be nothing. */
void marks_changed(struct files *f, const char *path, const struct state *before,
                   const struct state *after, uint64_t since);
/* By so many bytes, for a quota. */
void marks_grew(struct files *f, int64_t bytes, uint64_t since);
/* Something changed where we cannot look. */
void marks_blind(struct files *f, uint64_t since);
/* Calls what is due; `settled`: everything that happened is known. */
void marks_step(struct files *f, bool settled);
bool marks_any_ending(const struct files *f);
bool marks_any_quota(const struct files *f);
