/* inherit - the environment of programs where there is an image: its own variables, below those
 * that the server sends. Without an image init has none, and there is nothing to inherit. */
#pragma once

#include "base/err.h"

/* From now on; what programs need and the image does not say is added. Proxies are dropped: they
 * are of who runs Jerboa, and connections of the sandbox find their way without; so is what podman
 * says of itself. */
int inherit_begin(struct err *e);

/* `given` and what is inherited beside it, sorted, ended by NULL; the caller frees the list alone.
 */
const char **inherit_compose(const char *const *given);
