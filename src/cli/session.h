/* session - a sandbox and one run in it, in the foreground: the script's standard streams are ours.
 */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "egress/egress.h"
#include "engine/engine.h"
#include "sandbox/run.h"

/* Blocks until the run is over, its sandbox is gone, and what it printed has left us. SIGINT,
 * SIGTERM and SIGHUP go to the script; a second one ends it. */
struct session_result {
    struct run_result run;
    int               status;                  /* for a shell */
    json_t           *walls;                   /* as the sandbox told them */
    json_t           *refused;                 /* as egress_take_refused has it */
    json_t           *connections;             /* as egress_log */
    char              files_note[ERR_MSG_MAX]; /* what was not brought back, and why; or "" */
};

void session_result_done(struct session_result *r);

/* `network`: its policies and limits, without a resolver; NULL: it has the host's. `layer_dir`: of
 * its dependencies, or NULL. */
int session_run(const struct engine *engine, const json_t *plan, const struct egress_spec *network,
                const char *layer_dir, const struct run_spec *spec, struct session_result *ret,
                struct err *e);
