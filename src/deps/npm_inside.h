/* npm_inside - what npm and whoever speaks TLS in a sandbox must know of this user's configuration.
 *
 * Registries go in by their addresses alone: code inside is anybody's, so neither a token nor a
 * password nor a project's .npmrc does. A registry on this machine's loopback is a place that the
 * jail redirects. Certificates that the user trusts (npm's ca and cafile, NODE_EXTRA_CA_CERTS) are
 * added to the system's, for all programs: inside, they are all one user's. */
#pragma once

#include "base/err.h"
#include "egress/policy.h"
#include "engine/engine.h"
#include "npm/npm_config.h"

struct npm_inside {
    char                registry[NPM_CONFIG_URL_MAX + 32]; /* npm_config_registry=URL */
    const char         *environment[4 + 1];                /* NAME=VALUE */
    char               *npmrc;                             /* of scopes, or NULL */
    struct engine_place places[ENGINE_PLACES_MAX];
    size_t              n_places;
    char               *ca;               /* certificates as text, or NULL */
    char               *files[3];         /* of certificates, ended by NULL; absolute */
    char                bundle[PATH_MAX]; /* see npm_inside_bundle; or "" */
    int                 bundle_fd;        /* holds it, if there is one */
};

/* Says on stderr which file of certificates cannot be read, and goes on, as Node does. */
int  npm_inside_init(struct npm_inside *n, const struct npm_config *config,
                     const struct policy *policy, struct err *e);
void npm_inside_done(struct npm_inside *n);

/* For engines that compose no file of certificates: one of the store, where this user's count
 * beside the system's. */
int npm_inside_bundle(struct npm_inside *n, struct err *e);

/* Fills in what the plan must have of it; borrowed. */
void npm_inside_plan(const struct npm_inside *n, struct engine_spec *spec);
