/* npm_config - what npm's configuration says: which registry, with which credentials, by which way.
 *
 * Layers, each before the next, as npm's: the environment (npm_config_KEY), the project's .npmrc,
 * the user's (~/.npmrc or userconfig), the global one (PREFIX/etc/npmrc or globalconfig), what was
 * compiled in.
 *
 * A project's .npmrc is somebody else's file: it comes with a checkout that may be the very thing
 * that somebody wants a sandbox for. npm believes it; we do so only as far as it can harm the
 * project alone.
 *   - Runtimes are shared by all projects and run outside of sandboxes too, and a registry vouches
 *     for its own hashes: for them the project's file is not read at all (NPM_CONFIG_USER).
 *   - For the project's packages it may name registries and their credentials, nothing else. Who is
 *     trusted (ca, cafile, strict-ssl) and which way requests go (proxies) would let it read
 *     the user's own tokens; userconfig, globalconfig and prefix would let it choose the
 *     other files.
 *   - Its registries are https, or on this machine: a registry of the user's, asked without TLS,
 *     would show the user's token on the wire.
 *   - ${VARIABLES} in it would send any secret of the environment to any host. They count only in
 *     credentials for a host that the user's own layers name as a registry. Elsewhere using
 *     such a setting is an error and not a gap: a scope that silently falls back to the default
 *     registry gets somebody else's package of the same name. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/url.h"

enum npm_config_reach {
    NPM_CONFIG_USER,    /* without the project's file */
    NPM_CONFIG_PROJECT, /* with it: found from the working directory upwards, as npm does */
};

enum { NPM_CONFIG_URL_MAX = 1024, NPM_CONFIG_SCOPE_MAX = 216 }; /* npm: a name has 214 letters */

struct npm_config;

struct npm_config *npm_config_load(enum npm_config_reach reach, struct err *e); /* NULL: error */
void               npm_config_free(struct npm_config *c);

/* The value of the layer that counts, or NULL when none is set ("null" is none). A ca[] list is one
 * text, entries separated by an empty line. */
const char *npm_config_get(const struct npm_config *c, const char *key);

/* The registry of a package, by its scope; ends with "/". */
int npm_config_registry(const struct npm_config *c, const char *package,
                        char ret[NPM_CONFIG_URL_MAX], struct err *e);

/* Addresses of all registries that the user's own layers name, scoped ones included. Borrowed; how
 * many there are. */
size_t npm_config_registries(const struct npm_config *c, const char **ret, size_t max);

/* Each setting of the user's own layers that counts and says where packages come from, or lets us
 * in there: "registry", "@scope:registry", "//host/path/:_authToken". */
void npm_config_each_registry(const struct npm_config *c,
                              void (*take)(void *owner, const char *key, const char *value),
                              void *owner);

/* Registries of scopes, "@name", that the user's own layers name: of each scope the one that
 * counts. Borrowed; how many there are. */
struct npm_scope {
    char        name[NPM_CONFIG_SCOPE_MAX];
    const char *registry;
};

size_t npm_config_scopes(const struct npm_config *c, struct npm_scope *ret, size_t max);

/* The value of the Authorization header for a request to this address, or NULL (no error) when
 * there is none: credentials belong to a host, a port and all paths below theirs. The caller frees
 * it. */
int npm_config_authorization(const struct npm_config *c, const struct url *url, char **ret,
                             struct err *e);

/* Whether credentials for this address are configured, but by a variable of the environment that is
 * not set; then its name. */
bool npm_config_unset_variable(const struct npm_config *c, const struct url *url, char *ret,
                               size_t size);

const char *npm_config_proxy(const struct npm_config *c, const struct url *url); /* or NULL */

/* Whom to trust: a file, certificates in a text, or neither: the system's. Borrowed. */
struct npm_trust {
    const char *cafile, *ca;
    bool        any; /* strict-ssl=false: certificates are not checked */
};

struct npm_trust npm_config_trust(const struct npm_config *c);

/* One sentence about settings of the project that do not count, or "". */
const char *npm_config_note(const struct npm_config *c);
