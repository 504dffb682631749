/* install - the dependencies of one `jerboa run`: blocks until their layer is there. What takes
 * longer than a second is told on stderr. */
#pragma once

#include "base/err.h"
#include "base/options.h"
#include "store/layer.h"
#include "store/runtime.h"

struct install_spec {
    const struct option_list *deps; /* NAME, NAME@RANGE */
    const char               *installer;
    int64_t                   fresh_ms;
    bool                      strict;
    const struct runtime     *runtime;
};

struct install {
    struct layer_hold hold;         /* no layer: its dir is "" */
    char             *package_json; /* of /workspace, or NULL */
};

int  install_deps(const struct install_spec *spec, struct install *ret, struct err *e);
void install_done(struct install *i);
