/* probe - one short command in a sandbox of its own, made by the real engine: how it ended, and
 * what it printed; or one layer. For the doctor, who believes what was tried. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/engine.h"
#include "sandbox/run.h"

struct probe {
    struct run_result result;
    json_t           *walls; /* as the jail told them: see sandbox_ops; or NULL */
    struct buf        text;  /* standard output, of which the rest is dropped; then a NUL */
};

/* Blocks until the sandbox is gone. -1 and one sentence: no sandbox, or the command did not start.
 * probe_done in either case. */
int  probe_run(const struct engine_spec *spec, const char *const *argv, struct probe *ret,
               struct err *e);
void probe_done(struct probe *p);

/* A layer is attached to a sandbox of its own: 0, or why it could not be. Blocks. */
int probe_attach(const struct engine_spec *spec, const char *layer_dir, struct err *e);
