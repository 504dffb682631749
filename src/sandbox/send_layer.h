/* send_layer - a layer of dependencies on its way into a sandbox that cannot be shown it: by the
 * bytes, through the pipe.
 *
 * The same promise as attach.h, which calls this where there is no jail; but what is sent lies on
 * the sandbox's own disk and counts there. */
#pragma once

#include "base/err.h"
#include "sandbox/sandbox.h"

void send_layer_start(struct sandbox *s, const char                        *modules_dir,
                      void (*done)(void *owner, const struct err *e), void *owner);
