/* sources - where packages of layers come from: the user's registries, and how they let us in.
 *
 * A project's .npmrc does not count: layers are shared by all projects of a store. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "npm/npm_config.h"

enum { SOURCES_IDENTITY_SIZE = 40, SOURCES_MAX = 32 };

/* An installer and its registries as one word, "bun-0123456789abcdef", which is part of a layer's
 * key: the same names may be other packages elsewhere. */
void sources_identity(const struct npm_config *c, const char *installer,
                      char ret[SOURCES_IDENTITY_SIZE]);

/* An .npmrc with registries and credentials, for an installer: it holds secrets. */
int sources_npmrc(const struct npm_config *c, struct buf *ret, struct err *e);

/* The way out, if it leads through a proxy, or NULL. It may hold a password. Borrowed. */
const char *sources_proxy(const struct npm_config *c);
