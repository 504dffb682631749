/* podman - the docker engine's other program: the same words, no daemon, and without root no rights
 * of root's. */
#pragma once

#include "engine/engine.h"

extern const struct engine podman;

/* -1: it would be asked on another machine, or through a service. */
int podman_check(bool is_remote, struct err *e);
