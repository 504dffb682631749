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

/* `dir` NULL: none. `changed` is told whose file (the principal) and its path below the share. */
struct shares *shares_new(struct event_base *base, const char *dir,
                          void (*changed)(void *owner, const char *principal, const char *dir,
                                          const char *path, enum files_change how),
                          void (*note)(const char *sentence), void *owner);
void           shares_free(struct shares *s);

/* Makes the folder of a name that comes for the first time. */
int shares_get(struct shares *s, const char *principal, struct share *ret, struct err *e);
