#include "npm/types_entry.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "npm/semver.h"

enum { DEPTH_MAX = 16, LOOKS_MAX = 10000 }; /* conditions in conditions multiply */

static const struct semver typescript = {.n = {5, 9, 0}}; /* who asks "types@RANGE" */

struct lookup {
    const struct declarations *d;
    bool                       any_condition; /* else those of an import in Node */
    const char                *part; /* for which the star of a target stands; NULL: none */
    size_t                     part_size;
    int                        looks;
};

/* ---- patterns ---- */

/* Whether "lib/STAR" means the path; then how much of it the star stands for, from where. */
static bool fits(const char *pattern, const char *path, size_t *ret_at, size_t *ret_size)
{
    const char *star = strchr(pattern, '*');
    size_t      before = star ? (size_t)(star - pattern) : 0, behind = star ? strlen(star + 1) : 0;
    size_t      size = strlen(path);

    if (!star)
        return false;
    *ret_at = before;
    *ret_size = size - before - behind;
    return size >= before + behind && memcmp(pattern, path, before) == 0 &&
           strcmp(path + size - behind, star + 1) == 0;
}

static const char *find_pattern(const json_t *paths, const char *path)
{
    const char *pattern, *best = NULL;
    json_t     *targets;
    size_t      at, size, longest = 0;

    if (json_object_get(paths, path))
        return path;
    json_object_foreach ((json_t *)paths, pattern, targets)
        if (fits(pattern, path, &at, &size) && (!best || at > longest)) {
            best = pattern;
            longest = at;
        }
    return best;
}

static struct declaration *find_substituted(const struct declarations *d, const char *target,
                                            const char *part, size_t size)
{
    const char *star = strchr(target, '*');
    char        path[PATH_MAX];
    int         n;

    if (!star || !part)
        return declarations_find(d, "", target);
    n = snprintf(path, sizeof path, "%.*s%.*s%s", (int)(star - target), target, (int)size, part,
                 star + 1);
    return n > 0 && (size_t)n < sizeof path ? declarations_find(d, "", path) : NULL;
}

/* ---- exports, imports ---- */

static bool is_types(const char *condition)
{
    return strcmp(condition, "types") == 0 ||
           (str_starts(condition, "types@") &&
            semver_range_test(condition + strlen("types@"), &typescript) == 1);
}

static bool is_met(const struct lookup *l, const char *condition)
{
    static const char *const met[] = {"import", "node", "module-sync", "module", "default", NULL};

    if (str_starts(condition, "types")) /* they had their turn */
        return false;
    for (size_t i = 0; met[i]; i++)
        if (strcmp(met[i], condition) == 0)
            return true;
    return l->any_condition;
}

static struct declaration *find_target(struct lookup *l, const json_t *target, int depth);

static struct declaration *find_condition(struct lookup *l, const json_t *conditions, int depth)
{
    struct declaration *found;
    const char         *name;
    json_t             *target;

    json_object_foreach ((json_t *)conditions, name, target)
        if (is_types(name) && (found = find_target(l, target, depth)))
            return found;
    json_object_foreach ((json_t *)conditions, name, target)
        if (is_met(l, name) && (found = find_target(l, target, depth)))
            return found;
    return NULL;
}

static struct declaration *find_first(struct lookup *l, const json_t *targets, int depth)
{
    struct declaration *found = NULL;
    size_t              i;
    json_t             *target;

    json_array_foreach ((json_t *)targets, i, target)
        if ((found = find_target(l, target, depth)))
            return found;
    return NULL;
}

static struct declaration *find_target(struct lookup *l, const json_t *target, int depth)
{
    if (depth >= DEPTH_MAX || ++l->looks > LOOKS_MAX)
        return NULL;
    if (json_is_string(target))
        return str_starts(json_string_value(target), "./")
                   ? find_substituted(l->d, json_string_value(target), l->part, l->part_size)
                   : NULL;
    if (json_is_array(target))
        return find_first(l, target, depth + 1);
    return json_is_object(target) ? find_condition(l, target, depth + 1) : NULL;
}

static bool has_paths(const json_t *exports)
{
    return str_starts(json_object_iter_key(json_object_iter((json_t *)exports)), ".");
}

static struct declaration *find_exported(struct lookup *l, const json_t *exports)
{
    struct declaration *found = NULL;
    const char         *path;
    json_t             *target;

    if (!json_is_object(exports) || json_object_size(exports) == 0 || !has_paths(exports))
        return find_target(l, exports, 0);
    if (json_object_get(exports, "."))
        return find_target(l, json_object_get(exports, "."), 0);
    json_object_foreach ((json_t *)exports, path, target)
        if ((found = find_target(l, target, 0)))
            return found;
    return NULL;
}

/* ---- typesVersions ---- */

static const json_t *paths_of_version(const json_t *package)
{
    const char *range;
    json_t     *paths;

    json_object_foreach (json_object_get(package, "typesVersions"), range, paths)
        if (semver_range_test(range, &typescript) == 1)
            return paths;
    return NULL;
}

static struct declaration *find_versioned(const json_t *package, const struct declarations *d,
                                          const char *path)
{
    const json_t       *paths = paths_of_version(package);
    const char         *pattern = paths ? find_pattern(paths, path) : NULL;
    struct declaration *found = NULL;
    size_t              i, at = 0, size = 0;
    json_t             *target;

    if (!pattern)
        return NULL;
    fits(pattern, path, &at, &size);
    json_array_foreach (json_object_get(paths, pattern), i, target)
        if (json_is_string(target) &&
            (found = find_substituted(d, json_string_value(target), path + at, size)))
            return found;
    return NULL;
}

/* ---- all of it ---- */

static struct declaration *find_member(const json_t *package, const struct declarations *d,
                                       const char *path)
{
    struct declaration *found;

    while (str_starts(path, "./"))
        path += 2;
    found = find_versioned(package, d, path);
    return found ? found : declarations_find(d, "", path);
}

struct declaration *types_entry(const json_t *package, const struct declarations *d)
{
    static const char *const members[] = {"types", "typings", "main", NULL};
    const json_t            *exports = json_object_get(package, "exports");
    struct declaration      *found = find_exported(&(struct lookup){.d = d}, exports);

    if (!found)
        found = find_exported(&(struct lookup){.d = d, .any_condition = true}, exports);
    for (size_t i = 0; !found && members[i]; i++) {
        const char *path = json_string_value(json_object_get(package, members[i]));
        if (path)
            found = find_member(package, d, path);
    }
    return found ? found : find_member(package, d, "index");
}

struct declaration *types_import(const json_t *package, const struct declarations *d,
                                 const char *name)
{
    const json_t       *imports = json_object_get(package, "imports");
    const char         *pattern = find_pattern(imports, name);
    struct lookup       l = {.d = d};
    struct declaration *found;
    size_t              at = 0;

    if (!pattern)
        return NULL;
    if (fits(pattern, name, &at, &l.part_size))
        l.part = name + at;
    found = find_target(&l, json_object_get(imports, pattern), 0);
    l.any_condition = true;
    return found ? found : find_target(&l, json_object_get(imports, pattern), 0);
}
