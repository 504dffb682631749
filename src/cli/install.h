/* install - dependencies for verbs that wait: blocks until their layer is there. What takes longer
 * than a second is told on stderr. */
#pragma once

#include "base/err.h"
#include "base/options.h"
#include "engine/engine.h"
#include "store/layer.h"
#include "store/runtime.h"

#define INSTALL_INSTALLER "bun"
#define INSTALL_FRESH_MS (24LL * 3600 * 1000)

/* Options that decide which layer a set of dependencies is, and how it is made: whoever makes one
 * ahead must be told the same as who uses it. */
/* clang-format off */
#define INSTALL_ROW_INSTALLER(at)                                                                  \
    {"installer", 0, OPTION_STRING, (at), "NAME", "of dependencies: bun or npm (bun)"}
#define INSTALL_ROW_FRESH(at)                                                                      \
    {"fresh", 0, OPTION_DURATION, (at), "TIME",                                                    \
     "resolve ranges of dependencies again after this long (24h; 0: never)"}
#define INSTALL_ROW_STRICT(at)                                                                     \
    {"strict", 0, OPTION_FLAG, (at), NULL,                                                         \
     "refuse to start when a wall that may be missing is missing"}
/* clang-format on */

struct install_spec {
    const struct option_list *deps; /* NAME, NAME@RANGE */
    const char               *installer;
    int64_t                   fresh_ms;
    bool                      strict;
    const struct runtime     *runtime;
    const struct engine      *engine; /* whose sandboxes install them */
    bool                      remote; /* as engine_spec's */
};

struct install {
    struct layer_hold  hold;         /* no layer: its dir is "" */
    char              *package_json; /* of /workspace, or NULL */
    struct event_base *base;
    struct layers     *layers; /* while they are on their way to the disk */
};

/* As install_deps would refuse them, before anything is started. */
int  install_check(const struct option_list *deps, struct err *e);
int  install_deps(const struct install_spec *spec, struct install *ret, struct err *e);
void install_done(struct install *i); /* waits until a new layer is on the disk */
