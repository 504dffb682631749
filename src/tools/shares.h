/* shares - FILES_DIR for each who has one: itself, or with tokens a folder of it by the token's
 * name. Each is watched from its first use on. */
#pragma once

#include <event2/event.h>

#include "base/err.h"
#include "sandbox/files.h"

struct shares;

struct share {
    const char   *dir;   /* real path; NULL: there is no FILES_DIR */
    struct files *files; /* NULL: likewise */
};

/* Told soon after, in rounds: whatever happens to many files is one round. */
struct shares_ops {
    void (*updated)(void *owner, const char *principal, const char *uri); /* what is in a file */
    void (*listed)(void *owner, const char *principal); /* which files there are */
    void (*note)(void *owner, const char *sentence);    /* for the operator */
};

/* `dir` NULL: none. */
struct shares *shares_new(struct event_base *base, const char *dir, const struct shares_ops *ops,
                          void *owner);
void           shares_free(struct shares *s);

/* Makes the folder of a name that comes for the first time. */
int shares_get(struct shares *s, const char *principal, struct share *ret, struct err *e);
