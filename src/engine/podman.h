/* podman - the docker engine's other program: the same words, no daemon, and without root no rights
 * of root's. */
#pragma once

#include "engine/engine.h"

extern const struct engine podman;
