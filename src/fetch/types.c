#include "fetch/types.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "fetch/download.h"
#include "npm/document.h"
#include "npm/tarball.h"
#include "npm/types_entry.h"
#include "npm/types_gather.h"
#include "store/downloads.h"
#include "store/store.h"

/* What is kept of one file, of all files, of their names, of package.json; how many directories may
 * have one. */
enum {
    FILE_MAX = 512 << 10,
    TEXTS_MAX = 48 << 20,
    NAMES_MAX = 32 << 20,
    PACKAGE_MAX = 1 << 20,
    DIRECTORIES_MAX = 1000,
    NAME_BYTES = 256
};

static const struct tarball_limits limits = {.members = 200000, .bytes = 512ll << 20};

struct contents {
    struct declarations files;
    json_t             *package; /* its package.json, or NULL */
    struct declaration *entry;   /* or NULL */
    size_t              kept_bytes, names_bytes, directories;
};

static void contents_done(struct contents *c)
{
    declarations_done(&c->files);
    json_decref(c->package);
}

/* ---- the tarball ---- */

/* The beginning of the member. */
static int read_text(struct tarball *t, const struct tarball_member *m, size_t max, char **ret,
                     size_t *ret_size, struct err *e)
{
    size_t         want = m->size < (int64_t)max ? (size_t)m->size : max, size = 0;
    autofree char *text = malloc(want + 1);

    if (!text)
        abort();
    while (size < want) {
        ssize_t n = tarball_read(t, text + size, want - size, e);
        if (n < 0)
            return -1;
        if (n == 0)
            return tarball_refuse(t, ERR_INVALID, "the archive is damaged", e);
        size += (size_t)n;
    }
    *ret = text;
    *ret_size = size;
    text = NULL;
    return 0;
}

static int take_package(struct contents *c, struct tarball *t, const struct tarball_member *m,
                        struct err *e)
{
    autofree char *text = NULL;
    size_t         size;

    if (m->size > PACKAGE_MAX)
        return tarball_refuse(t, ERR_LIMIT, "it is too large", e);
    TRY(read_text(t, m, PACKAGE_MAX, &text, &size, e));
    json_decref(c->package);
    c->package = document_parse(text, size, NULL);
    return 0;
}

/* One that is too large, or no JSON, says nothing: many a package has some among its tests. */
static int take_directory(struct contents *c, struct tarball *t, const struct tarball_member *m,
                          struct err *e)
{
    static const char *const members[] = {"types", "typings", "main", NULL};
    autofree char           *text = NULL;
    autojson json_t         *package = NULL;
    size_t                   size;

    if (m->size > PACKAGE_MAX || c->directories++ >= DIRECTORIES_MAX)
        return 0;
    TRY(read_text(t, m, PACKAGE_MAX, &text, &size, e));
    package = document_parse(text, size, NULL);
    for (size_t i = 0; members[i]; i++) {
        const char *module = json_string_value(json_object_get(package, members[i]));
        if (module && strlen(module) < PATH_MAX) {
            declarations_add_directory(&c->files, m->path, module);
            break;
        }
    }
    return 0;
}

static int take_file(struct contents *c, struct tarball *t, const struct tarball_member *m,
                     struct err *e)
{
    c->names_bytes += strlen(m->path);
    if (c->names_bytes > NAMES_MAX)
        return tarball_refuse(t, ERR_LIMIT, "the names of its files are too long", e);
    declarations_add(&c->files, m->path, m->size);
    return 0;
}

static int take_name(void *owner, struct tarball *t, const struct tarball_member *m, struct err *e)
{
    struct contents *c = owner;
    const char      *slash = strrchr(m->path, '/');

    if (m->is_dir)
        return 0;
    if (strcmp(m->path, "package.json") == 0)
        return take_package(c, t, m, e);
    if (slash && strcmp(slash, "/package.json") == 0)
        return take_directory(c, t, m, e);
    return declarations_is_one(m->path) ? take_file(c, t, m, e) : 0;
}

static int take_text(void *owner, struct tarball *t, const struct tarball_member *m, struct err *e)
{
    struct contents    *c = owner;
    struct declaration *file = m->is_dir ? NULL : declarations_get(&c->files, m->path);

    if (!file || file->means || (file != c->entry && c->kept_bytes >= TEXTS_MAX))
        return 0;
    free(file->text); /* the last of one name counts, as when it is unpacked */
    file->text = NULL;
    file->size = m->size;
    TRY(read_text(t, m, FILE_MAX, &file->text, &file->text_size, e));
    c->kept_bytes += file->text_size;
    return 0;
}

static int read_contents(const char *path, struct contents *ret, struct err *e)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "read a tarball of the store");
    TRY(tarball_each(fd, &limits, take_name, ret, e));
    declarations_sort(&ret->files);
    if (!json_is_object(ret->package))
        return err_set(e, ERR_INVALID, "its package.json is missing, or not JSON");
    ret->entry = types_entry(ret->package, &ret->files);
    if (!ret->entry)
        return 0;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return err_sys(e, "read a tarball of the store");
    return tarball_each(fd, &limits, take_text, ret, e);
}

/* ---- one package ---- */

static int get(struct line *l, const char *name, const char *range, struct release *ret_release,
               struct contents *ret, struct err *e)
{
    struct line_want want = {.range = range, .use_tags = true};
    char             path[PATH_MAX];

    TRY(line_resolve(l, name, &want, ret_release, e));
    TRY(download_keep(l, name, ret_release, path, e));
    if (read_contents(path, ret, e) < 0)
        return err_wrap(e, "npm package %s %s", name, ret_release->version);
    return 0;
}

static json_t *describe(struct contents *c, const struct release *release, size_t max_bytes)
{
    json_t            *left_out = json_array(), *o = json_object();
    autobuf struct buf text;

    buf_init(&text, max_bytes + PATH_MAX + 64);
    types_gather(c->package, &c->files, c->entry, max_bytes, &text, left_out);
    json_object_set_new(o, "hasTypes", json_true());
    json_object_set_new(o, "version", json_string(release->version));
    json_object_set_new(o, "types", json_text((const char *)text.data, text.size));
    if (json_array_size(left_out) > 0)
        json_object_set(o, "leftOut", left_out);
    json_decref(left_out);
    return o;
}

/* ---- @types ---- */

/* "@scope/name" is "@types/scope__name" there, "JSONStream" is "@types/jsonstream". */
static void mangle(const char *name, char ret[NAME_BYTES])
{
    const char *slash = *name == '@' ? strchr(name, '/') : NULL;

    if (slash)
        snprintf(ret, NAME_BYTES, "@types/%.*s__%s", (int)(slash - name - 1), name + 1, slash + 1);
    else
        snprintf(ret, NAME_BYTES, "@types/%s", name);
    for (char *c = ret; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

/* Types have the major version of what they describe; below 1 the minor one counts. */
static void range_beside(const char *version, char ret[NAME_BYTES])
{
    struct semver v = {0};

    semver_parse(version, &v);
    if (v.n[0] > 0)
        snprintf(ret, NAME_BYTES, "%" PRIu64, v.n[0]);
    else
        snprintf(ret, NAME_BYTES, "0.%" PRIu64, v.n[1]);
}

/* Of the same major version if there is one, else the latest. */
static int get_beside(struct line *l, const char *name, const char *version,
                      struct release *ret_release, struct contents *ret, struct err *e)
{
    char       range[NAME_BYTES];
    struct err none = {0};

    range_beside(version, range);
    if (get(l, name, range, ret_release, ret, &none) == 0)
        return 0;
    if (none.kind == ERR_NOT_FOUND)
        return get(l, name, "latest", ret_release, ret, e);
    *e = none;
    return -1;
}

static json_t *explain(const char *version, const char *reason)
{
    return json_pack("{s:b, s:s, s:s}", "hasTypes", 0, "version", version, "reason", reason);
}

static json_t *describe_types(struct contents *c, const struct release *release, const char *types,
                              size_t max_bytes)
{
    json_t *o = describe(c, release, max_bytes);

    json_object_set_new(o, "typesPackage", json_string(types));
    return o;
}

static json_t *explain_none(const struct release *own, const char *types, const char *why)
{
    autofree char *reason =
        str_format("the package has no type declarations of its own, and %s %s", types, why);

    return explain(own->version, reason);
}

static int describe_beside(struct line *l, const char *name, const struct release *own,
                           size_t max_bytes, json_t **ret, struct err *e)
{
    struct contents c = {0};
    struct release  release;
    struct err      failed = {0};
    char            types[NAME_BYTES];
    int             done = 0;

    if (str_starts(name, "@types/")) {
        *ret = explain(own->version, "the package has no type declarations");
        return 0;
    }
    mangle(name, types);
    if (get_beside(l, types, own->version, &release, &c, &failed) == 0)
        *ret = c.entry ? describe_types(&c, &release, types, max_bytes)
                       : explain_none(own, types, "has none either");
    else if (failed.kind == ERR_NOT_FOUND)
        *ret = explain_none(own, types, "is not in the registry");
    else
        done = -1, *e = failed;
    contents_done(&c);
    return done;
}

/* ---- the answer ---- */

static int look(struct line *l, const char *name, const char *range, size_t max_bytes, json_t **ret,
                struct err *e)
{
    struct contents own = {0};
    struct release  release;
    int             done = get(l, name, range, &release, &own, e);

    if (done == 0 && own.entry)
        *ret = describe(&own, &release, max_bytes);
    else if (done == 0)
        done = describe_beside(l, name, &release, max_bytes, ret, e);
    contents_done(&own);
    return done;
}

/* "npm:name@range" is another package under this name. */
static void read_alias(char *alias, const char **ret_name, const char **ret_range)
{
    char *at = *alias ? strchr(alias + 1, '@') : NULL;

    if (at)
        *at = '\0';
    *ret_name = alias;
    *ret_range = at ? at + 1 : "latest";
}

int types_fetch(const char *name, const char *range, size_t max_bytes, struct buf *ret,
                struct err *e)
{
    static const char *const parts[] = {"downloads", NULL};
    struct line             *l = line_open(NPM_CONFIG_USER, parts, e);
    autofree char   *alias = str_starts(range, "npm:") ? str_dup(range + strlen("npm:")) : NULL;
    autojson json_t *answer = NULL;
    autofree char   *text = NULL;
    int              done;

    if (!l)
        return -1;
    if (alias)
        read_alias(alias, &name, &range);
    downloads_sweep();
    done = look(l, name, range, max_bytes, &answer, e);
    line_free(l);
    if (done < 0)
        return store_explain(e);
    text = json_dumps(answer, JSON_COMPACT);
    if (!text || buf_add(ret, text, strlen(text)) < 0)
        return err_set(e, ERR_LIMIT, "npm package %s: its types are too large", name);
    return 0;
}
