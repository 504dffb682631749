/* packument - a package's document in the registry: its versions, and which of them to take.
 *
 * The document is hostile until checked: what is handed out has a version that semver_parse
 * accepts, a sha512, and an address on the configured registry's own origin. No network here. */
#pragma once

#include "base/json.h"
#include "npm/integrity.h"
#include "npm/semver.h"

enum { PACKUMENT_VERSION_MAX = 64, PACKUMENT_URL_MAX = 2048 };

struct release {
    char             version[PACKUMENT_VERSION_MAX];
    char             url[PACKUMENT_URL_MAX];
    struct integrity integrity;
};

struct release_want {
    const char          *range; /* of versions; or a tag, when use_tags is set */
    const struct semver *node;  /* that the release's engines.node must accept, or NULL */
    bool use_tags; /* as npm: a tag may be meant, and "latest" goes before newer ones */
};

/* The release that suits, the newest one unless tags say otherwise; ERR_NOT_FOUND when there is
 * none. */
int packument_pick(const json_t *packument, const char *registry, const struct release_want *want,
                   struct release *ret, struct err *e);
