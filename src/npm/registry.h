/* registry - npm registries as configured: documents of packages, and their tarballs, verified.
 *
 * Blocks; used by the process of jerboa-fetch that talks to them, alone (fetch/line.h). */
#pragma once

#include "npm/npm_config.h"
#include "npm/packument.h"

struct registry;

/* Called as bytes of a tarball come; total_bytes is -1 while unknown. */
typedef void registry_progress(void *owner, int64_t bytes, int64_t total_bytes);

/* The registries that this reach of npm's configuration names. NULL: error. */
struct registry *registry_open(enum npm_config_reach reach, struct err *e);
void             registry_free(struct registry *r);
const char      *registry_note(const struct registry *r);   /* npm_config_note's */
const char      *registry_cafile(const struct registry *r); /* read at each connection; or NULL */

/* The release of `package` that suits, from the registry of its scope. */
int registry_resolve(struct registry *r, const char *package, const struct release_want *want,
                     struct release *ret, struct err *e);

/* The text `readme` of its whole document (the caller frees it), or NULL and the latest release: it
 * has none, or is too large to be read. */
int registry_resolve_readme(struct registry *r, const char *package, char **ret_readme,
                            struct release *ret, struct err *e);

/* A document of the registry itself, below its address; of the registry of a scope ("@name"), or of
 * that of all others (""). `ret_registry` is set in any case. */
int registry_get(struct registry *r, const char *scope, const char *path,
                 char ret_registry[NPM_CONFIG_URL_MAX], json_t **ret, struct err *e);

/* Completes the file, which may hold the beginning of the tarball already: the server is asked for
 * the rest. On success its sha512 was right; if it is wrong because of an old beginning, all is
 * fetched anew. On ERR_UNAVAILABLE what came so far is worth keeping. */
int registry_download(struct registry *r, const struct release *release, int file_fd,
                      registry_progress *progress, void *owner, struct err *e);
