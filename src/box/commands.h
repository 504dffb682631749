/* commands - shell commands in a box, one after the other, until one fails.
 *
 * They wait for their turn, and then have one time limit together. */
#pragma once

#include "box/box.h"
#include "box/record.h"
#include "trail/trail.h"

struct commands;

struct commands_spec { /* stays the caller's and must live until done */
    struct box          *box;
    struct trail_subject subject; /* whose they are */
    const char *const   *list;    /* ended by NULL */
    struct files        *files;   /* as a job has it */
    int64_t              files_quota_bytes;
    int64_t              timeout_ms;
    bool                 again; /* after some that were for naught: in their place */
};

struct command_result {
    struct run_result run;
    struct keep      *out, *err; /* NULL: the box ended before it began */
};

struct commands_result {
    struct err             err;          /* of a box that ended before they began: n is 0 */
    bool                   files_failed; /* … or the user's files could not be sent */
    struct command_result *ended;        /* in their order; the last one may have failed */
    size_t                 n;
    json_t                *refused;                 /* connections; or NULL */
    char                   files_note[ERR_MSG_MAX]; /* as a job's */
    bool                   for_naught; /* the same once more will do: see turn_is_for_naught */
};

struct commands_ops {
    void (*line)(void *owner, const char *line); /* the newest that was printed */
    /* Once; all of it is gone after the call. */
    void (*done)(void *owner, const struct commands_result *r);
};

struct commands *commands_start(const struct commands_spec *spec, const struct commands_ops *ops,
                                void *owner);
void             commands_cancel(struct commands *c); /* idempotent; done still comes */
