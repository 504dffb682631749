/* held - a Node that was booted ahead and waits at its gate (engine/gate.cjs) for a script.
 *
 * It runs nothing until a run releases it; then it is that run's process and the held one is gone.
 * What Node said while it booted is kept for the run: a plain one would have heard it, too. */
#pragma once

#include "sandbox/process.h"
#include "sandbox/run.h"

struct held;

/* `env` is the run's whole environment, `script` its main module; both must live as long as it is
 * held. `gone`, from the loop: it ended before anybody took it, and is only to be freed. NULL: it
 * cannot be started. */
struct held *held_start(struct sandbox *s, const char *const *env, const char *script,
                        void (*gone)(void *owner), void *owner);

/* Somebody else has it now, and looks at it when he needs it: `gone` is not called any more. */
void held_take(struct held *h);

/* Why this run cannot have it and must start a Node of its own; NULL: it can. */
const char *held_misfit(const struct held *h, const struct run_spec *spec);

/* The script starts; `ret` is set before the first op is called. */
void held_release(struct held *h, struct process **ret, const struct process_ops *ops, void *owner);
void held_free(struct held *h); /* nobody wants it: it is killed, if it lives; or NULL */
