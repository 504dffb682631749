/* cell - one program in a sandbox of its own, from its start to its end. Blocks; for jerboa-layer.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "egress/policy.h"
#include "engine/engine.h"
#include "sandbox/run.h"

enum { CELL_OUTPUT_MAX = 64 << 10 };

struct cell_spec {
    struct engine_spec   sandbox; /* memory, disk and the rest; zeros are the cell's own */
    const struct policy *policy;
    struct run_spec      run;
    int                  grown_fd;  /* a directory that it may fill, or -1 … */
    int64_t              grown_max; /* … up to this, or it is killed */
};

struct cell_result {
    struct run_result run;
    struct buf        output;  /* both streams as they came, the last CELL_OUTPUT_MAX bytes */
    json_t           *refused; /* as egress_take_refused has it */
    bool              outgrown;
};

/* Lines of output go to stderr, too, without what a terminal would obey. -1: there was no sandbox.
 */
int  cell_run(const struct cell_spec *spec, struct cell_result *ret, struct err *e);
void cell_result_done(struct cell_result *r);
