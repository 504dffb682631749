/* box_trail - what the audit log is told of a box: that somebody has it, its connections, what ran
 * in it, its end. All of it is nothing without a trail. */
#pragma once

#include "box/box.h"
#include "sandbox/run.h"

struct trail        *box_trail(const struct box *b);
struct trail_subject box_subject(const struct box *b); /* with the call that has its turn */

void box_tell_made(const struct box *b, const char *call); /* `call` may be NULL */
void box_tell_stopped(const struct box *b);

struct egress_watch box_watch(struct box *b); /* for its sandbox, which does not outlive it */

struct box_program {
    const char *kind;   /* "script", "command", "server" */
    size_t      number; /* of a command; else 0 */
};

/* Its box may be gone: the subject is a copy. */
void box_tell_run(struct trail *t, const struct trail_subject *s, const struct box_program *p,
                  const struct run_result *r);
