/* docker - the engine of container daemons: one `docker run` a sandbox, with jerboa-init as its
 * entrypoint. Others have the same words (engine/podman.h).
 *
 * What the daemon does of the walls stands in the plan, as arguments; the rest is done by init
 * itself, before any code runs (init/alone.h). There is no jail and no control socket: what a jail
 * would be asked, init is asked through the pipe (init/group.h). */
#pragma once

#include "engine/engine.h"

extern const struct engine docker;

/* ---- for engines with the same words ---- */

/* A client that is killed before its container runs leaves it behind. */
enum { DOCKER_END_MS = 60000 };

/* What they say otherwise. */
struct dialect {
    const char *const *words;     /* more of them, ended by NULL; or NULL */
    const char        *tmpfs;     /* options of each, after a comma; or NULL: a number of inodes */
    const char        *resolver;  /* the word that makes an /etc/resolv.conf; or NULL */
    const char        *runtime;   /* unless the user names one; or NULL: its own choice */
    const char        *directory; /* where the client runs; or NULL: where Jerboa does */
    bool               is_rootless; /* root inside is who runs Jerboa */
};

json_t *docker_plan(const struct engine_spec *spec, const struct dialect *d, struct err *e);
const char *const *docker_environment(const struct engine_spec *spec);
