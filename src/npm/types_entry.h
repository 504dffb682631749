/* types_entry - where the types of a package begin, by its package.json and the files it has.
 *
 * In this order, each only if the file is there: `exports` ("." or, when there is no such, the
 * first path that has types; "types" and "types@RANGE" before other conditions, nested ones too;
 * first as an import, then whatever else is offered), `types`, `typings`, `main`, index.d.ts; what
 * is not of `exports` by way of `typesVersions`. More lenient than the compiler, which gives up at
 * the first name without a file: an agent wants to read, not to be taught. Pure; package.json is
 * hostile. */
#pragma once

#include "base/json.h"
#include "npm/declarations.h"

struct declaration *types_entry(const json_t *package, const struct declarations *d); /* or NULL */

/* What "#name" means in the package, by `imports`, with the same conditions; NULL: nothing of it.
 */
struct declaration *types_import(const json_t *package, const struct declarations *d,
                                 const char *name);
