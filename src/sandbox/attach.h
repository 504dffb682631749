/* attach - a layer of dependencies on its way into a sandbox that runs.
 *
 * Code inside sees it at /workspace/node_modules, can write there, and changes nothing of the layer
 * itself. A later one replaces it. Who attaches holds the layer (store/layer.h) as long as the
 * sandbox lives. */
#pragma once

#include "base/err.h"
#include "sandbox/sandbox.h"

/* `layer_dir` has a node_modules. done is called once, from the loop, also when the sandbox ends
 * meanwhile; no deadline: the jail has one. */
void sandbox_attach(struct sandbox *s, const char                        *layer_dir,
                    void (*done)(void *owner, const struct err *e), void *owner);
