/* words - init's command line: `alone` (there is no jail), `egress` (connections leave through the
 * pipe), `user=UID:GID` (who code is, inside), `fds=N` (descriptors of a process),
 * `own=PATH` (a directory that becomes his; may be repeated), `loopback=ADDRESS,PORT` (a place of
 * the host's loopback that can be reached; may be repeated). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "jail/redirect.h"

enum { WORDS_OWN_MAX = 8 };

struct words {
    bool                  alone, egress;
    uid_t                 uid;
    gid_t                 gid;
    int64_t               fds;
    const char           *own[WORDS_OWN_MAX]; /* borrowed of argv */
    size_t                n_own;
    struct redirect_place places[REDIRECT_PLACES_MAX];
    size_t                n_places;
};

int words_parse(int argc, char **argv, struct words *ret, struct err *e);
