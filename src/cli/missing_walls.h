/* missing_walls - which walls of a sandbox are missing, as one line of the log: why, and what to
 * do. */
#pragma once

#include "base/json.h"

void missing_walls_log(const json_t *walls); /* as sandbox_ops has them */
