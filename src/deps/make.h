/* make - fills a layer: an installer in a sandbox, then the scripts of its packages in another one.
 * Blocks; for jerboa-layer. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "store/entry.h"

/* As deps/layers.c sends it. Strings are borrowed from the document. */
struct make_request {
    const char   *version;      /* of who asks; judged before anything else was decoded */
    const json_t *dependencies; /* {NAME: RANGE}, checked */
    const char   *key, *installer, *identity, *node_version, *engine, *runtime_dir;
    int64_t       max_age_ms;
    bool          strict, remote;
};

struct make_result {
    struct buf   output;            /* what installers and scripts said */
    char         note[ERR_MSG_MAX]; /* one sentence for the log, or "" */
    bool         was_there;         /* made by another process meanwhile */
    struct entry layer;             /* new, and not yet on the disk; else its dir_fd is -1 */
};

/* Whoever asked can use the layer now. */
int  make_layer(const struct make_request *r, struct make_result *ret, struct err *e);
void make_settle(struct make_result *r); /* … and after a power cut */
void make_result_done(struct make_result *r);
