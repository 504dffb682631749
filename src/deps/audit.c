#include "deps/audit.h"

#include <stdbool.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/url.h"
#include "deps/deps.h"
#include "npm/semver.h"

static bool is_of(const char *address, const char *const *registries)
{
    struct url url, registry;

    if (url_parse(address, &url, NULL) < 0)
        return false;
    for (; *registries; registries++)
        if (url_parse(*registries, &registry, NULL) == 0 && url_same_origin(&url, &registry))
            return true;
    return false;
}

static int refuse(const char *package, const char *what, struct err *e)
{
    return err_set(e, ERR_INVALID,
                   "package %.60s comes from '%.80s', which is none of the configured registries",
                   package, what);
}

/* What the package itself wants. Peers and those for development are not installed for it. */
static int check_wanted(const char *package, const json_t *row, struct err *e)
{
    static const char *const lists[] = {"dependencies", "optionalDependencies"};
    const char              *name;
    json_t                  *range;

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        json_object_foreach (json_object_get(row, lists[i]), name, range) {
            const char *text = json_string_value(range);
            if (!text || !deps_is_of_registry(text))
                return err_set(e, ERR_INVALID,
                               "package %.60s wants %.60s from '%.60s', and only registries are "
                               "allowed",
                               package, name, text ? text : "");
        }
    }
    return 0;
}

static json_t *packages_of(const json_t *lock, struct err *e)
{
    json_t *packages = json_object_get(lock, "packages");

    if (!json_is_object(packages))
        err_set(e, ERR_INVALID, "the installer's lock lists no packages");
    return json_is_object(packages) ? packages : NULL;
}

/* ---- bun.lock: {"packages": {KEY: ["NAME@VERSION", REGISTRY or "", {…}, INTEGRITY]}} ---- */

/* bun writes a comma behind the last member, too. */
static void drop_last_commas(char *text)
{
    char *comma = NULL;
    bool  quoted = false;

    for (char *p = text; *p; p++) {
        if (quoted && *p == '\\' && p[1])
            p++;
        else if (*p == '"')
            quoted = !quoted, comma = NULL;
        else if (!quoted && *p == ',')
            comma = p;
        else if (!quoted && (*p == '}' || *p == ']') && comma)
            *comma = ' ', comma = NULL;
        else if (!quoted && !strchr(" \t\r\n", *p))
            comma = NULL;
    }
}

static int audit_bun_package(const char *key, const json_t *row, const char *const *registries,
                             struct err *e)
{
    const char   *name = json_string_value(json_array_get(row, 0));
    const char   *from = json_string_value(json_array_get(row, 1));
    const char   *at = name ? strrchr(name, '@') : NULL;
    struct semver version;

    if (!at || at == name || semver_parse(at + 1, &version) < 0)
        return refuse(key, at ? at + 1 : "nowhere", e);
    if (!from || (*from && !is_of(from, registries))) /* "": the default registry */
        return refuse(key, from ? from : name, e);
    return check_wanted(key, json_array_get(row, 2), e);
}

int audit_bun_lock(const char *text, const char *const *registries, struct err *e)
{
    autofree char   *strict = str_dup(text);
    autojson json_t *lock = NULL;
    const char      *key;
    json_t          *row, *packages;

    drop_last_commas(strict);
    lock = json_parse(strict, strlen(strict), e);
    if (!lock)
        return err_wrap(e, "bun.lock");
    packages = packages_of(lock, e);
    if (!packages)
        return -1;
    json_object_foreach (packages, key, row)
        TRY(audit_bun_package(key, row, registries, e));
    return 0;
}

/* ---- package-lock.json: {"packages": {"node_modules/NAME": {version, resolved, …}}}. We make npm
 * leave `resolved` out where a registry's document said which tarball it is ---- */

static int audit_npm_package(const char *key, const json_t *row, const char *const *registries,
                             struct err *e)
{
    const char   *resolved = json_string_value(json_object_get(row, "resolved"));
    const char   *version = json_string_value(json_object_get(row, "version"));
    const char   *last = strstr(key, "node_modules/");
    struct semver v;

    for (const char *p = last; p; p = strstr(p + 1, "node_modules/"))
        last = p + strlen("node_modules/");
    if (!last || json_is_true(json_object_get(row, "link")))
        return refuse(last ? last : key, resolved ? resolved : "a link", e);
    /* What a package brings along in its own tarball came with that. */
    if (json_is_true(json_object_get(row, "inBundle")))
        return check_wanted(last, row, e);
    if (resolved ? !is_of(resolved, registries) : !version || semver_parse(version, &v) < 0)
        return refuse(last, resolved ? resolved : "nowhere", e);
    return check_wanted(last, row, e);
}

int audit_npm_lock(const char *text, const char *const *registries, struct err *e)
{
    autojson json_t *lock = json_parse(text, strlen(text), e);
    const char      *key;
    json_t          *row, *packages;

    if (!lock)
        return err_wrap(e, "package-lock.json");
    packages = packages_of(lock, e);
    if (!packages)
        return -1;
    json_object_foreach (packages, key, row)
        if (*key) /* "" is what was asked for */
            TRY(audit_npm_package(key, row, registries, e));
    return 0;
}
