/* capability - what a client can do, as it declared it: "sampling", or a member of one as in
 * "elicitation/url", "sampling/tools", "extensions/ID". */
#pragma once

#include <stdbool.h>

#include "base/json.h"

enum { CAPABILITIES_MAX = 65536 };

bool    capabilities_are_proper(const json_t *declared); /* an object, not too large */
bool    capability_has(const json_t *declared, const char *path);
json_t *capability_describe(const char *path); /* {"elicitation": {"url": {}}} */

/* What the client must have to be asked this, or NULL. */
const char *capability_to_ask(const char *method, const json_t *params);
