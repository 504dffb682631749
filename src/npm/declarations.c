#include "npm/declarations.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

bool declarations_is_one(const char *path)
{
    return str_ends(path, ".ts") || str_ends(path, ".mts") || str_ends(path, ".cts") ||
           str_ends(path, ".tsx");
}

void declarations_add(struct declarations *d, const char *path, int64_t size)
{
    if (d->n == d->room) {
        d->room = d->room ? d->room * 2 : 64;
        d->list = reallocarray(d->list, d->room, sizeof *d->list);
        if (!d->list)
            abort();
    }
    d->list[d->n++] = (struct declaration){.path = str_dup(path), .size = size};
}

void declarations_add_directory(struct declarations *d, const char *path, const char *module)
{
    declarations_add(d, path, 0);
    d->list[d->n - 1].means = str_dup(module);
}

static int by_path(const void *a, const void *b)
{
    const struct declaration *x = a, *y = b;

    return strcmp(x->path, y->path);
}

void declarations_sort(struct declarations *d)
{
    if (d->n > 0)
        qsort(d->list, d->n, sizeof *d->list, by_path);
}

void declarations_done(struct declarations *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->list[i].path);
        free(d->list[i].text);
        free(d->list[i].means);
    }
    free(d->list);
    *d = (struct declarations){0};
}

struct declaration *declarations_get(const struct declarations *d, const char *path)
{
    struct declaration key = {.path = (char *)path};

    return d->n ? bsearch(&key, d->list, d->n, sizeof *d->list, by_path) : NULL;
}

/* ---- from a module to its file ---- */

/* Appends the parts of `path`; ".." takes one away. -1: it leads out, or is too long. */
static int walk(char *at, const char *path)
{
    size_t used = strlen(at);

    for (size_t n; *path; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (n == 0 || (n == 1 && *path == '.'))
            continue;
        if (n == 2 && memcmp(path, "..", 2) == 0) {
            char *slash = strrchr(at, '/');
            if (!used)
                return -1;
            used = slash ? (size_t)(slash - at) : 0;
            at[used] = '\0';
            continue;
        }
        if (used + n + 2 > PATH_MAX)
            return -1;
        if (used > 0)
            at[used++] = '/';
        memcpy(at + used, path, n);
        used += n;
        at[used] = '\0';
    }
    return 0;
}

static struct declaration *replace_end(const struct declarations *d, const char *path,
                                       const char *end, const char *by)
{
    char   other[PATH_MAX + 16];
    size_t n = strlen(path) - strlen(end);

    snprintf(other, sizeof other, "%.*s%s", (int)n, path, by);
    return declarations_get(d, *path ? other : other + 1); /* "" + "/index.d.ts" */
}

/* As the compiler: beside the program first, then what the name may be short for. Declarations go
 * before sources. */
struct ending {
    const char *end, *by;
};
static const struct ending files[] = {
    {".js", ".d.ts"},   {".js", ".ts"},   {".js", ".tsx"},    {".jsx", ".d.ts"},  {".jsx", ".tsx"},
    {".mjs", ".d.mts"}, {".mjs", ".mts"}, {".mjs", ".d.ts"},  {".cjs", ".d.cts"}, {".cjs", ".cts"},
    {".cjs", ".d.ts"},  {".ts", ".d.ts"}, {".mts", ".d.mts"}, {".cts", ".d.cts"}, {"", ".d.ts"},
    {"", ".d.mts"},     {"", ".d.cts"},   {"", ".ts"},        {"", ".tsx"},       {0},
};
static const struct ending directories[] = {
    {"", "/index.d.ts"}, {"", "/index.d.mts"}, {"", "/index.d.cts"},
    {"", "/index.ts"},   {"", "/index.tsx"},   {0},
};

static struct declaration *find_ending(const struct declarations *d, const char *path,
                                       const struct ending *rows)
{
    struct declaration *found = NULL;

    for (; rows->by && !found; rows++)
        if (str_ends(path, rows->end) && (*path || rows->by[0] == '/'))
            found = replace_end(d, path, rows->end, rows->by);
    return found;
}

static struct declaration *find_file(const struct declarations *d, const char *path)
{
    struct declaration *found = declarations_is_one(path) ? declarations_get(d, path) : NULL;

    return found ? found : find_ending(d, path, files);
}

/* By the package.json of that directory; what another directory's says about it does not count. */
static struct declaration *find_meant(const struct declarations *d, const char *directory)
{
    const struct declaration *package = replace_end(d, directory, "", "/package.json");
    struct declaration       *found;
    char                      path[PATH_MAX];

    if (!package || !package->means || str_copy(path, sizeof path, directory) < 0 ||
        walk(path, package->means) < 0)
        return NULL;
    found = find_file(d, path);
    return found ? found : find_ending(d, path, directories);
}

struct declaration *declarations_find(const struct declarations *d, const char *from,
                                      const char *module)
{
    struct declaration *found;
    char                path[PATH_MAX];
    char               *slash;

    if (str_copy(path, sizeof path, from) < 0)
        return NULL;
    slash = strrchr(path, '/');
    *(slash ? slash : path) = '\0';
    if (walk(path, module) < 0)
        return NULL;
    found = find_file(d, path);
    if (!found)
        found = find_meant(d, path);
    return found ? found : find_ending(d, path, directories);
}
