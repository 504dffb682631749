/* run - one program from its files to its verdict, in a sandbox that is already there.
 *
 * Files go in, one after the other; then, once run_begin was called, the program starts, its
 * deadline with it; at the end the facts are put together. `done` is called exactly once, and the
 * run is gone after it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/process.h"
#include "sandbox/sandbox.h"
#include "sandbox/verdict.h"

struct run;
struct held;

struct run_file {
    const char    *path; /* absolute, inside */
    const uint8_t *bytes;
    size_t         size;
};

struct run_spec { /* all of it stays the caller's and must live until done */
    const struct run_file *files;
    size_t                 n_files;
    const char           **argv, **env; /* ended by NULL; argv[0] is a path */
    const char            *cwd;
    bool                   has_stdin;
    int64_t                timeout_ms;
    struct held           *held;  /* taken over, for this program if it suits; or NULL */
    bool                   waits; /* the program, for run_begin; its files do not */
};

struct run_result {
    enum verdict         verdict;
    struct verdict_facts facts;
    struct err           err; /* of a run that never got to its program, or lost its sandbox */
    int64_t              wall_ms;
    uint64_t             cpu_us;
    uint64_t             peak_bytes; /* charged to its cgroup: this is what the limit bounds;
                                        without one, the most that the jail saw */
    uint64_t max_rss_bytes;          /* of its largest process, shared file pages included */
};

struct run_ops {
    void (*output)(void *owner, uint8_t stream, const uint8_t *bytes, size_t size);
    void (*stdin_room)(void *owner); /* first when the program runs; see process_stdin_room */
    void (*done)(void *owner, const struct run_result *r);
    /* It exited with 0 and said all, so its verdict is `ok` whatever its counters, which come with
     * done, will be, and even if its sandbox is lost before they come. Not of one whose sandbox is
     * lost already. May be NULL. */
    void (*succeeded)(void *owner);
};

struct run *run_start(struct sandbox *s, const struct run_spec *spec, const struct run_ops *ops,
                      void *owner);
void        run_begin(struct run *r); /* for one that waits; idempotent */
/* Before its time, because of VERDICT_CANCELLED, VERDICT_OUTPUT (it printed more than is kept) or
 * VERDICT_DISK (it filled a place that has no size of its own). Idempotent; done still comes. */
void run_end(struct run *r, enum verdict why);

/* The program, for its stdin, its credit and signals; NULL while there is none. */
struct process *run_process(struct run *r);
