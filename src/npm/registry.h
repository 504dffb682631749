/* registry - the configured npm registry: documents of packages, and their tarballs, verified.
 *
 * Blocks; used by jerboa-fetch only. */
#pragma once

#include "npm/npm_config.h"
#include "npm/packument.h"

struct registry;

/* Called as bytes of a tarball come; total_bytes is -1 while unknown. */
typedef void registry_progress(void *owner, int64_t bytes, int64_t total_bytes);

struct registry *registry_new(const struct npm_config *config);
void             registry_free(struct registry *r);

/* The newest release of `package` that suits. */
int registry_resolve(struct registry *r, const char *package, const struct release_want *want,
                     struct release *ret, struct err *e);

/* Writes the release's tarball to the (empty) file; on success its sha512 was right. */
int registry_download(struct registry *r, const struct release *release, int file_fd,
                      registry_progress *progress, void *owner, struct err *e);
