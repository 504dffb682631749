/* run_trail - `jerboa run` in the audit log: a call of one who is known by his uid, its
 * connections, its end. All of it is nothing without --audit. */
#pragma once

#include "cli/sandbox_options.h"
#include "cli/script.h"
#include "sandbox/telling.h"

struct run_trail { /* stays where it is while the sandbox lives */
    struct trail_subject subject;
    struct telling       telling;
    int64_t              began_ms;
};

/* Before anything else is begun; -1: it cannot be opened, or not written and that is demanded. */
int run_trail_begin(struct run_trail *t, const struct sandbox_options *o, const char *policy,
                    const struct script *script, const struct option_list *deps, struct err *e);
/* NULL: it did not come to a run. Idempotent: the first one tells. */
void run_trail_end(struct run_trail *t, const struct run_result *r);
