/* telling - what the audit log is told of one sandbox: its connections as they come and go, what
 * ran in it. All of it is nothing without a trail. */
#pragma once

#include "egress/watch.h"
#include "sandbox/run.h"
#include "trail/trail.h"

struct telling {                                        /* must outlive the sandbox */
    struct trail *trail;                                /* or NULL */
    struct trail_subject (*subject)(const void *owner); /* at this moment */
    const void *owner;
};

struct egress_watch telling_watch(struct telling *t); /* for the sandbox's egress_spec */

struct telling_program {
    const char *kind;   /* "script", "command", "server" */
    size_t      number; /* of a command; else 0 */
};

/* The sandbox may be gone: the subject is a copy. */
void telling_run(struct trail *t, const struct trail_subject *s, const struct telling_program *p,
                 const struct run_result *r);
