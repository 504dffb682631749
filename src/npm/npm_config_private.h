/* npm_config_private - the settings themselves, for those who load them (npm_config_load.c) and
 * those who answer from them (npm_config.c).
 *
 * Settings are a list, in which layer and place decide who counts: what comes later in a higher
 * layer. Nothing is interpreted while it is loaded but variables and paths. */
#pragma once

#include "npm/npm_config.h"

enum { NPM_REFUSED_MAX = 128 };

enum npm_layer {
    NPM_LAYER_BUILTIN,
    NPM_LAYER_GLOBAL,
    NPM_LAYER_USER,
    NPM_LAYER_PROJECT,
    NPM_LAYER_ENV
};

struct npm_setting {
    enum npm_layer layer;
    char          *key, *value;
    bool           unexpanded; /* of the project, with variables that it may not have */
};

struct npm_config {
    struct npm_setting *list;
    size_t              n;
    char                project_file[PATH_MAX]; /* or "" */
    char refused[NPM_REFUSED_MAX];              /* keys in it that do not count: "proxy, cafile" */
    char note[NPM_REFUSED_MAX + ERR_MSG_MAX];
};

const struct npm_setting *npm_config_find(const struct npm_config *c,
                                          const char              *key); /* or NULL */

enum { NPM_CREDENTIALS = 4 };
extern const char *const npm_credential_keys[NPM_CREDENTIALS];

/* Of "//host/path/:_authToken" where the colon is; NULL: the key is no credential. */
const char *npm_config_credential(const char *key);
bool        npm_config_names_registry(const char *key);
bool        npm_config_is_below(const char *path, const char *prefix);
