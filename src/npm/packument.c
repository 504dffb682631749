#include "npm/packument.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* No statement about Node is none against it, as for npm. */
static bool suits_node(const json_t *manifest, const struct semver *node)
{
    const char *range =
        json_string_value(json_object_get(json_object_get(manifest, "engines"), "node"));

    return !node || !range || semver_range_test(range, node) == 1;
}

static bool is_usable(const char *version, struct semver *ret)
{
    return strlen(version) < PACKUMENT_VERSION_MAX && semver_parse(version, ret) == 0;
}

static bool suits(const char *version, const json_t *manifest, const struct release_want *want,
                  struct semver *ret)
{
    return is_usable(version, ret) && semver_range_test(want->range, ret) == 1 &&
           suits_node(manifest, want->node);
}

/* Where the path of an http(s) URL begins, or NULL. */
static const char *url_path(const char *url)
{
    const char *host = strstr(url, "://");

    return host ? strchr(host + 3, '/') : NULL;
}

/* The tarball's path on the configured origin: mirrors hand on documents that still name the
 * original's host, which may be out of reach, or see a token that is not for it. */
static int place_tarball(const char *tarball, const char *registry, char *ret, struct err *e)
{
    const char *path = tarball ? url_path(tarball) : NULL;
    const char *origin_end = url_path(registry);
    int         n;

    for (const char *c = path; c && *c; c++)
        if (!isgraph((unsigned char)*c))
            path = NULL;
    if (!path || !origin_end)
        return err_set(e, ERR_INVALID, "the registry gives no address for its tarball");
    n = snprintf(ret, PACKUMENT_URL_MAX, "%.*s%s", (int)(origin_end - registry), registry, path);
    if (n >= PACKUMENT_URL_MAX)
        return err_set(e, ERR_LIMIT, "the address of its tarball is too long");
    return 0;
}

static int read_release(const char *version, const json_t *manifest, const char *registry,
                        struct release *ret, struct err *e)
{
    const json_t *dist = json_object_get(manifest, "dist");
    const char   *integrity = json_string_value(json_object_get(dist, "integrity"));
    const char   *tarball = json_string_value(json_object_get(dist, "tarball"));

    snprintf(ret->version, sizeof ret->version, "%s", version);
    if (integrity_parse(integrity ? integrity : "", &ret->integrity, e) < 0 ||
        place_tarball(tarball, registry, ret->url, e) < 0)
        return err_wrap(e, "version %s", version);
    return 0;
}

/* What a tag stands for, when it stands for one of the versions. */
static const char *tagged(const json_t *packument, const char *tag, const json_t **ret_manifest)
{
    const char *version =
        json_string_value(json_object_get(json_object_get(packument, "dist-tags"), tag));

    *ret_manifest =
        version ? json_object_get(json_object_get(packument, "versions"), version) : NULL;
    return *ret_manifest ? version : NULL;
}

/* The version that tags make the right one, or NULL. */
static const char *pick_by_tag(const json_t *packument, const struct release_want *want,
                               const json_t **ret_manifest)
{
    struct semver v;
    const char   *version;

    if (!want->use_tags)
        return NULL;
    version = tagged(packument, want->range, ret_manifest);
    if (version && is_usable(version, &v))
        return version;
    version = tagged(packument, "latest", ret_manifest);
    return version && suits(version, *ret_manifest, want, &v) ? version : NULL;
}

int packument_pick(const json_t *packument, const char *registry, const struct release_want *want,
                   struct release *ret, struct err *e)
{
    json_t       *versions = json_object_get(packument, "versions"), *manifest;
    const json_t *best_manifest = NULL;
    const char   *version, *best_version = NULL;
    struct semver best, v;

    if (!json_is_object(versions))
        return err_set(e, ERR_INVALID, "the registry's document lists no versions");
    best_version = pick_by_tag(packument, want, &best_manifest);
    if (best_version)
        return read_release(best_version, best_manifest, registry, ret, e);
    json_object_foreach (versions, version, manifest) {
        if (!suits(version, manifest, want, &v) || (best_version && semver_compare(&v, &best) <= 0))
            continue;
        best = v;
        best_version = version;
        best_manifest = manifest;
    }
    if (!best_version)
        return err_set(e, ERR_NOT_FOUND, "the registry has no version that suits \"%.60s\"",
                       want->range);
    return read_release(best_version, best_manifest, registry, ret, e);
}
