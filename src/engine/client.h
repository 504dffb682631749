/* client - the program of a container daemon as the one that is started for a sandbox: `docker
 * run`, whose stdin and stdout are init's; or, for a daemon on another machine, jerboa-remote,
 * which lets it make a container, copies into it what a local one would be shown, and becomes
 * `docker start`.
 *
 * The plan has `program`, `arguments` (of `run`, or of `create`), `directory` (where it starts; or
 * none), `remote`, and `entries`, which a remote one is sent. */
#pragma once

#include "engine/engine.h"

int client_start(const json_t *plan, struct engine_ends *ret, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e);
/* Removes that container (store/container.h). */
int client_sweep(const struct engine *engine, const char *name, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e);
