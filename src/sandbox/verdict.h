/* verdict - what is to be said of a run, from facts that the kernel and we ourselves recorded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum verdict {
    VERDICT_OK,
    VERDICT_SANDBOX_LOST,
    VERDICT_CANCELLED,
    VERDICT_TIMEOUT,
    VERDICT_OUTPUT,
    VERDICT_OOM,
    VERDICT_PIDS,
    VERDICT_DISK,
    VERDICT_ERROR,
};

struct verdict_facts {
    bool     lost;      /* the sandbox ended before the run did */
    bool     cancelled; /* we ended it because we were asked to */
    bool     timed_out; /* we ended it at its deadline */
    bool     output_exceeded;
    bool     quota_exceeded; /* FILES_DIR grew by more than it may */
    int      code;           /* of the main process, or -1 */
    int      signal;         /* or 0 */
    uint64_t oom_kills;
    uint64_t forks_refused;
    bool     heap_exhausted; /* V8 said so before it aborted */
    bool     watched; /* no cgroup: memory was sampled by the jail, and all but init was ended */
    bool     disk_full;
};

/* Exit 0 is ok, whatever limit was touched on the way. Otherwise the first that applies, in the
 * order of the enum. */
enum verdict verdict_of(const struct verdict_facts *f);
const char  *verdict_name(enum verdict v);

/* Who found out, for verdicts that are about a limit: "cgroup", "watch" (the jail, for want of a
 * cgroup), "v8" (its heap limit), "tmpfs", "quota" (of FILES_DIR); else NULL. */
const char *verdict_source(enum verdict v, const struct verdict_facts *f);

/* The exit status of `jerboa run`. */
int verdict_exit_status(enum verdict v, const struct verdict_facts *f);
