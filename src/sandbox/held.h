/* held - a Node that was booted ahead and waits at its gate (engine/gate.cjs) for a script.
 *
 * It runs nothing until a run releases it; then it is that run's process and the held one is gone.
 * What Node said while it booted is kept for the run: a plain one would have heard it, too. */
#pragma once

#include "sandbox/process.h"
#include "sandbox/run.h"

struct held;

struct held_boot { /* what it knows from its boot on; what it points to must live as long */
    const char *const *env;    /* the run's whole environment, ended by NULL */
    const char        *script; /* its main module */
};

/* `gone`, from the loop: it ended before anybody wanted it, and is freed. NULL: it cannot be
 * started. */
struct held *held_start(struct sandbox *s, const struct held_boot *boot, void (*gone)(void *owner),
                        void *owner);

/* Another one has it from now on, and he is told when it is gone. */
void held_pass(struct held *h, void (*gone)(void *owner), void *owner);

/* Why this run cannot have one that booted so, and must start a Node of its own; NULL: it can. */
const char *held_misfit(const struct held_boot *boot, const struct run_spec *spec);
bool        held_fits(const struct held *h, const struct run_spec *spec); /* and it has not ended */

/* The script starts; `ret` is set before the first op is called. */
void held_release(struct held *h, struct process **ret, const struct process_ops *ops, void *owner);
void held_free(struct held *h); /* nobody wants it: it is killed; or NULL */
