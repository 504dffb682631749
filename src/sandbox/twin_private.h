/* twin_private - what the twin*.c share. twin.c has what is known and the step, twin_send.c sends
 * what changed here, twin_fetch.c fetches what changed inside. */
#pragma once

#include "base/buf.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "sandbox/landing.h"
#include "sandbox/listing.h"
#include "sandbox/paths.h"
#include "sandbox/twin.h"

#define TWIN_PREFIX "files/" /* of what it has, in /workspace */

enum { TWIN_LIST_MAX = 1 << 23, TWIN_DEPTH_MAX = 64 };

struct look { /* at a file, on one side */
    int64_t size, mtime_ns;
};

struct known {
    struct look here, inside;
    bool        is_sent; /* … and how it is inside is still to be seen */
    uint32_t    seen;    /* the round that met it last */
};

enum twin_state {
    TWIN_IDLE,
    SEND_LOOK, /* the watch catches up */
    SEND_LIST,
    SEND_SEEN,
    FETCH_LIST,
    FETCH_GONE,
    FETCH_EACH,
    TWIN_DONE,
};

struct twin {
    struct sandbox *sandbox;
    int64_t         max_bytes;
    struct paths    known; /* struct known */
    uint32_t        round;

    /* what is under way */
    enum twin_state    state;
    bool               waiting, cancelled;
    struct sending    *sending; /* or NULL */
    struct later       later;
    struct deadline    pause;
    struct files      *files;
    bool               is_fetch;
    struct files_mark *mark;
    const char        *dir;
    int                dir_fd;
    struct buf         changed, gone; /* paths, each ended by NUL */
    struct paths       wanted;        /* struct look: to be fetched */
    struct paths       dirs;          /* inside; no values */
    char              *gone_until;    /* of the known ones, the last that was looked at */
    const char        *next;          /* of the wanted ones, the last that was begun */
    struct landing     landing;
    size_t             n;     /* of files here, and … */
    int64_t            bytes; /* of all of them */
    int64_t            growth, quota_bytes;
    int64_t            until_ms;
    size_t             failed;
    bool               cut;
    struct err         err, file_err; /* file_err: of the one that is on its way */
    void (*done)(void *owner, const struct err *e);
    void *owner;
};

static inline bool look_is_same(const struct look *a, const struct look *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns;
}

/* ---- twin.c ---- */

void twin_go_on(struct twin *t);                               /* what was waited for is there */
bool twin_count(void *owner, const struct files_entry *entry); /* one that is here */
/* Of those that are known, the next that was not met in this round. */
const char *twin_next_unseen(const struct twin *t, const char *after, struct known **ret);

/* ---- twin_send.c ---- */

void twin_send_look(struct twin *t); /* the watch catches up */
/* False: nothing is to be sent, or can be (t->err). */
bool twin_send_changed(struct twin *t);
void twin_send_see(struct twin *t, const char *path, const struct look *now);
/* The next time all is sent again, and what is gone is removed inside again. */
void twin_send_doubt(struct twin *t);

/* ---- twin_fetch.c ---- */

void twin_fetch_see(struct twin *t, const char *path, enum row_kind kind, const struct look *now);
/* One of those that are gone inside, or of those that changed; false: there is none left. */
bool twin_fetch_remove_next(struct twin *t);
bool twin_fetch_next(struct twin *t);
