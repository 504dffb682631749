#include "deps/deps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "npm/package_name.h"
#include "npm/semver.h"

static const char alias[] = "npm:";

static bool is_one_line(const char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            return false;
    return true;
}

/* A range of semver, or a tag. To semver a newline is a space; not every installer thinks so. */
static bool is_range(const char *text)
{
    const struct semver any = {0};
    size_t              size = strlen(text);

    if (size > SEMVER_MAX || !is_one_line(text))
        return false;
    return semver_range_test(text, &any) >= 0 || package_name_is_part(text, size);
}

static bool is_alias(const char *text)
{
    const char *name = text + strlen(alias), *at;

    if (!str_starts(text, alias) || !*name)
        return false;
    at = strchr(name + 1, '@'); /* the first letter may be a scope's */
    return at ? package_name_is_one(name, (size_t)(at - name)) && is_range(at + 1)
              : package_name_is_one(name, strlen(name));
}

bool deps_is_of_registry(const char *range)
{
    if (str_starts(range, alias) && range[strlen(alias)])
        range = strchr(range + strlen(alias) + 1, '@'); /* past a scope's */
    /* No range and no tag has these: paths, addresses, owner/repository, protocols do. */
    return !range || !strpbrk(range, ":/\\");
}

static int check_one(const struct layer_dep *d, struct err *e)
{
    if (!d->name || !package_name_is_one(d->name, strlen(d->name)))
        return err_set(e, ERR_INVALID, "'%.60s' is no name of an npm package",
                       d->name ? d->name : "");
    if (d->range && (is_range(d->range) || is_alias(d->range)))
        return 0;
    if (d->range && !deps_is_of_registry(d->range))
        return err_set(e, ERR_INVALID,
                       "%.60s: '%.60s' is refused: a version is a semver range, a tag or "
                       "npm:name@range, never a file, link, git repository, URL or workspace",
                       d->name, d->range);
    return err_set(e, ERR_INVALID,
                   "%.60s: '%.60s' is no version: it must be a semver range, a tag or "
                   "npm:name@range",
                   d->name, d->range ? d->range : "");
}

int deps_check(const struct layer_dep *deps, size_t n, struct err *e)
{
    if (n > LAYER_DEPS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d dependencies", LAYER_DEPS_MAX);
    for (size_t i = 0; i < n; i++) {
        TRY(check_one(&deps[i], e));
        for (size_t k = 0; k < i; k++)
            if (strcmp(deps[i].name, deps[k].name) == 0)
                return err_set(e, ERR_INVALID, "%.60s is named twice", deps[i].name);
    }
    return 0;
}

char *deps_manifest(const struct layer_dep *deps, size_t n)
{
    json_t          *list = json_object();
    autojson json_t *package = json_pack("{s:s, s:o}", "type", "module", "dependencies", list);
    char            *text;

    for (size_t i = 0; i < n; i++)
        json_object_set_new(list, deps[i].name, json_string(deps[i].range));
    text = package ? json_dumps(package, JSON_INDENT(2)) : NULL;
    if (!text)
        abort();
    return text;
}
