/* verb - what `jerboa VERB` may be: one file and one row each. */
#pragma once

#include "base/options.h"

struct verb {
    const char          *name;
    const char          *summary; /* one line; NULL: help and manual do not list it */
    const char          *usage;   /* what stands behind `jerboa` */
    const char          *details; /* further help, or NULL */
    const struct option *options;
    int (*main)(int argc, char **argv); /* argv begins behind the verb; returns the exit status */
};

extern const struct verb verb_serve, verb_run, verb_pull, verb_doctor, verb_gc, verb_fetch,
    verb_container, verb_errors, verb_events, verb_man;
extern const struct verb *const verbs[]; /* ended by NULL */

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };
