/* deps - which dependencies are taken: packages of a registry, by name and range, and nothing else.
 *
 * What comes from a client is checked before anything is spawned; what a package itself depends on,
 * when the installer has written its lock (deps/audit.h). Pure. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "store/layer.h"

/* Names are of npm/package_name.h. A range is one of semver, a tag, or npm:name@range; file:,
 * link:, git, addresses and workspace: are refused in one sentence. */
int deps_check(const struct layer_dep *deps, size_t n, struct err *e);

/* Whether what a package says of its own dependency means one of a registry. More lenient than
 * deps_check: whether such a range exists is the installer's to say. */
bool deps_is_of_registry(const char *range);

/* The package.json of a workspace that has them (checked); the caller frees. */
char *deps_manifest(const struct layer_dep *deps, size_t n);
