/* session - a sandbox and one run in it, in the foreground: the script's standard streams are ours.
 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "sandbox/run.h"

/* Blocks until the run is over, its sandbox is gone, and what it printed has left us. SIGINT,
 * SIGTERM and SIGHUP go to the script; a second one ends it. *ret_status is the exit status that
 * tells all this to a shell. */
int session_run(const json_t *plan, const struct run_spec *spec, struct run_result *ret,
                json_t **ret_walls, int *ret_status, struct err *e);
