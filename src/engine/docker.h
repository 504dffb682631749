/* docker - the engine of container daemons: one `docker run` a sandbox, with jerboa-init as its
 * entrypoint. Podman has the same words.
 *
 * What the daemon does of the walls stands in the plan, as arguments; the rest is done by init
 * itself, before any code runs (init/alone.h). There is no jail and no control socket: what a jail
 * would be asked, init is asked through the pipe (init/group.h). */
#pragma once

#include "engine/engine.h"

extern const struct engine docker, podman;
