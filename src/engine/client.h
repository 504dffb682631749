/* client - the program of a container daemon as the one that is started for a sandbox: `docker
 * run`, whose stdin and stdout are init's.
 *
 * The plan has `program` and `arguments`. */
#pragma once

#include "engine/engine.h"

int client_start(const json_t *plan, struct engine_ends *ret, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e);
