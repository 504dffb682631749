/* node - the Node of an image: wherever its PATH has it, where the others have theirs
 * (engine/layout.h), and whether it runs. */
#pragma once

#include "base/err.h"

int node_place(struct err *e);

/* Runs it once, for its version. It is the first program of the image that runs, and nothing of it
 * is left. One that cannot run here is e->sys == MESSAGE_NO_NODE, as is its absence. */
int node_try(struct err *e);
