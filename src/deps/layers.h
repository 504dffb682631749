/* layers - dependencies as layers, for whoever has a loop: found at once, or made by a child
 * (jerboa-layer), one for all who need the same, also across processes. Some are made at a time,
 * owners in turns; who waits for too long is told so. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "deps/deps.h"
#include "store/layer.h"

struct layers;
struct layer_request;

struct layers_spec {
    struct event_base *base;
    const char        *installer; /* "bun", "npm" */
    int64_t            fresh_ms;  /* ranges are resolved again after this long; 0: never */
    bool               strict;    /* its sandboxes, too, refuse when a wall is missing */
    bool               remote;    /* as engine_spec's: nothing can be installed there */
    /* A line for the log: what failed before something else worked. May be NULL. */
    void (*note)(const char *sentence);
};

/* Reads npm's configuration. One a server. */
struct layers *layers_new(const struct layers_spec *spec, struct err *e);
/* Ends what runs; whoever waits is not told. Waits for layers that the disk has not taken yet, for
 * ten seconds at most. */
void layers_free(struct layers *l);

/* The Node that a layer is for, and where it is installed: in sandboxes of this engine. */
struct layers_node {
    const char *version;
    const char *engine; /* its name */
    const char *dir;    /* as engine_spec's runtime_dir: scripts of packages find Node there */
};

struct layer_result {
    struct err        err;  /* then there is no layer: why, in one sentence */
    struct layer_hold hold; /* the receiver's: layer_release when no sandbox uses it any more */
    bool              was_there;
    int64_t           ms;
    const char       *output; /* what installers and scripts said, by its end; borrowed */
};

/* done is called once, from the loop, and the request is gone then; progress before that, a line
 * each time (may be NULL). What is passed need not outlive the call. `whose`: who has the turn if
 * something must be installed; "": nobody, each request has its own. */
struct layer_request *layers_ensure(struct layers *l, const struct layer_dep *deps, size_t n,
                                    const struct layers_node *node, const char *whose,
                                    void (*progress)(void *owner, const char *line),
                                    void (*done)(void *owner, const struct layer_result *r),
                                    void *owner);
/* done is not called any more; the last one's cancel ends the installer. */
void layer_request_cancel(struct layer_request *r);
