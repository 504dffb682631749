/* npm_config_load - npm's settings from where they are kept: the environment and three files.
 *
 * What is loaded goes into a list with its layer. A line of the project's file first passes the
 * rules that npm_config.h gives for it. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "config.h"
#include "npm/npm_config_private.h"
#include "npm/npmrc.h"
#include "npm/project.h"

enum { NPMRC_MAX = 1 << 20, SETTINGS_MAX = 4096, VALUE_MAX = 1 << 18 };

struct loading {
    struct npm_config *config;
    enum npm_layer     layer;
    struct err        *err;
};

/* ---- the list ---- */

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

static int add_take(struct npm_config *c, enum npm_layer layer, char *key, char *value,
                    struct err *e)
{
    if (c->n == SETTINGS_MAX) {
        free(key);
        free(value);
        return err_set(e, ERR_LIMIT, "npm's configuration has more than %d settings", SETTINGS_MAX);
    }
    c->list = reallocarray(c->list, c->n + 1, sizeof *c->list);
    if (!c->list)
        abort();
    c->list[c->n++] = (struct npm_setting){.layer = layer, .key = key, .value = value};
    return 0;
}

static char *take_text(char **text)
{
    char *taken = *text;

    *text = NULL;
    return taken;
}

static const char *look_at_env(const char *name)
{
    return getenv(name);
}

static char *expanded(const char *text, struct err *e)
{
    autobuf struct buf b;
    const char        *view;

    buf_init(&b, VALUE_MAX);
    view = npmrc_expand(text, look_at_env, &b) < 0 ? NULL : buf_text(&b);
    if (!view) {
        err_set(e, ERR_LIMIT, "a setting of npm is longer than %d KiB", VALUE_MAX >> 10);
        return NULL;
    }
    return strdup(view);
}

/* As npm: "~/" is the home directory, what is relative begins at the working directory. */
static char *absolute(const char *path)
{
    const char *home = getenv("HOME");
    char        cwd[PATH_MAX];

    if (str_starts(path, "~/") && home)
        return str_format("%s/%s", home, path + 2);
    if (*path == '/' || !getcwd(cwd, sizeof cwd))
        return strdup(path);
    while (str_starts(path, "./"))
        path += 2;
    return str_format("%s/%s", cwd, path);
}

static int add(struct npm_config *c, enum npm_layer layer, const char *key, const char *value,
               struct err *e)
{
    static const char *const paths[] = {"cafile", "userconfig", "globalconfig", "prefix"};
    autofree char           *k = expanded(key, e), *v = expanded(value, e);

    if (!k || !v)
        return -1;
    if (*v && strcmp(v, "null") != 0 && is_one_of(k, paths, 4)) {
        char *path = absolute(v);
        free(v);
        v = path;
    }
    return add_take(c, layer, take_text(&k), take_text(&v), e);
}

/* `ca[] = …` a second time belongs to the first; other lists are hosts. */
static bool add_to_list(struct npm_config *c, enum npm_layer layer, const struct npmrc_line *line)
{
    const struct npm_setting *before = npm_config_find(c, line->key);
    char                     *joined;

    if (!line->is_list || !before || before->layer != layer)
        return false;
    joined = str_format("%s%s%s", before->value, strcmp(line->key, "ca") == 0 ? "\n\n" : ",",
                        line->value);
    free(before->value);
    c->list[before - c->list].value = joined;
    return true;
}

/* ---- the project's own rules ---- */

/* Whether the user's own layers name the registry to which these credentials would go. */
static bool is_users_registry(const struct npm_config *c, const char *key, const char *colon)
{
    autofree char *text = str_format("https:%.*s", (int)(colon - key), key);
    struct url     to, own;

    if (url_parse(text, &to, NULL) < 0)
        return false;
    for (const struct npm_setting *s = c->list; s < c->list + c->n; s++)
        if (s->layer != NPM_LAYER_PROJECT && npm_config_names_registry(s->key) &&
            url_parse(s->value, &own, NULL) == 0 && (own.is_tls || own.is_loopback) &&
            strcmp(own.host, to.host) == 0 && npm_config_is_below(to.path, own.path))
            return true;
    return false;
}

static bool is_noted(const struct npm_config *c, const char *key)
{
    size_t n = strlen(key);

    for (const char *p = c->refused; (p = strstr(p, key)); p += n)
        if ((p == c->refused || p[-1] == ' ') && (!p[n] || p[n] == ','))
            return true;
    return false;
}

/* Each key once; all that there are have room. */
static void note_refused(struct npm_config *c, const char *key)
{
    size_t n = strlen(c->refused);

    if (is_noted(c, key))
        return;
    snprintf(c->refused + n, sizeof c->refused - n, "%s%s", n > 0 ? ", " : "", key);
    snprintf(c->note, sizeof c->note, "%s in %.150s %s not count: only your own npmrc may set %s",
             c->refused, c->project_file, n > 0 ? "do" : "does", n > 0 ? "them" : "it");
}

static int add_of_project(struct npm_config *c, const struct npmrc_line *line, struct err *e)
{
    static const char *const refused[] = {"ca",         "cafile",       "strict-ssl",
                                          "proxy",      "noproxy",      "https-proxy",
                                          "userconfig", "globalconfig", "prefix"};
    const char              *colon = npm_config_credential(line->key);
    bool                     variable = npmrc_has_variable(line->value);

    if (is_one_of(line->key, refused, sizeof refused / sizeof *refused))
        note_refused(c, line->key);
    if ((!colon && !npm_config_names_registry(line->key)) || npmrc_has_variable(line->key))
        return 0;
    if (!variable || (colon && is_users_registry(c, line->key, colon)))
        return add(c, NPM_LAYER_PROJECT, line->key, line->value, e);
    TRY(add_take(c, NPM_LAYER_PROJECT, strdup(line->key), strdup(line->value), e));
    c->list[c->n - 1].unexpanded = true;
    return 0;
}

/* ---- the layers ---- */

static int take_line(void *owner, const struct npmrc_line *line)
{
    struct loading *l = owner;

    if (l->layer == NPM_LAYER_PROJECT)
        return add_of_project(l->config, line, l->err);
    if (add_to_list(l->config, l->layer, line))
        return 0;
    return add(l->config, l->layer, line->key, line->value, l->err);
}

/* A file that is not there, or not ours to read, says nothing. */
static int load_file(struct npm_config *c, enum npm_layer layer, const char *path, struct err *e)
{
    struct loading l = {c, layer, e};
    struct err     unread = {0};
    autofree char *text = NULL;

    if (file_read_text(AT_FDCWD, path, NPMRC_MAX, &text, &unread) < 0) {
        if (unread.sys == ENOENT || unread.sys == EACCES || unread.sys == ENOTDIR)
            return 0;
        if (e)
            *e = unread;
        return -1;
    }
    return npmrc_parse(text, take_line, &l) < 0 ? err_wrap(e, "%s", path) : 0;
}

/* npm_config_strict_ssl is strict-ssl, in any case; what belongs to a host stays as written. */
static void spell_env_key(const char *name, size_t size, char *ret)
{
    bool as_is = str_starts(name, "//");

    for (size_t i = 0; i < size; i++)
        ret[i] = (char)(as_is                     ? name[i]
                        : name[i] == '_' && i > 0 ? '-'
                                                  : tolower((unsigned char)name[i]));
    ret[size] = '\0';
}

static int load_env(struct npm_config *c, struct err *e)
{
    static const char prefix[] = "npm_config_";

    for (char *const *v = environ; *v; v++) {
        const char *name = *v + sizeof prefix - 1, *equals = strchr(*v, '=');
        char        key[1024];
        if (strncasecmp(*v, prefix, sizeof prefix - 1) != 0 || !equals || equals <= name ||
            !equals[1] || (size_t)(equals - name) >= sizeof key)
            continue;
        spell_env_key(name, (size_t)(equals - name), key);
        TRY(add(c, NPM_LAYER_ENV, key, equals + 1, e));
    }
    return 0;
}

static int load_user(struct npm_config *c, struct err *e)
{
    const char *configured = npm_config_get(c, "userconfig"), *home = getenv("HOME");
    char        path[PATH_MAX];

    if (configured)
        return load_file(c, NPM_LAYER_USER, configured, e);
    if (!home || snprintf(path, sizeof path, "%s/.npmrc", home) >= (int)sizeof path)
        return 0;
    return load_file(c, NPM_LAYER_USER, path, e);
}

static void cut_parts(char *path, int n)
{
    for (char *slash = path; n > 0 && slash; n--)
        if ((slash = strrchr(path, '/')))
            *slash = '\0';
}

/* PREFIX is where npm itself would look: of the settings, else where the Node on PATH stands. */
static void find_prefix(const struct npm_config *c, char ret[PATH_MAX])
{
    const char *configured = npm_config_get(c, "prefix"), *variable = getenv("PREFIX");

    if (configured || (variable && *variable))
        str_copy(ret, PATH_MAX, configured ? configured : variable);
    else if (program_on_path("node", ret, NULL) < 0)
        str_copy(ret, PATH_MAX, "/usr");
    else
        cut_parts(ret, 2); /* PREFIX/bin/node */
}

static int load_global(struct npm_config *c, struct err *e)
{
    const char *configured = npm_config_get(c, "globalconfig");
    char        prefix[PATH_MAX], path[PATH_MAX];

    if (configured)
        return load_file(c, NPM_LAYER_GLOBAL, configured, e);
    find_prefix(c, prefix);
    if (snprintf(path, sizeof path, "%s/etc/npmrc", prefix) >= (int)sizeof path)
        return 0;
    if (access(path, F_OK) < 0) /* some distributions keep it there */
        str_copy(path, sizeof path, "/etc/npmrc");
    return load_file(c, NPM_LAYER_GLOBAL, path, e);
}

static bool is_file_of_user(const struct npm_config *c, const char *path)
{
    const char *configured = npm_config_get(c, "userconfig"), *home = getenv("HOME");
    size_t      n = home ? strlen(home) : 0;

    if (configured)
        return strcmp(path, configured) == 0;
    return home && strncmp(path, home, n) == 0 && strcmp(path + n, "/.npmrc") == 0;
}

static int load_project(struct npm_config *c, struct err *e)
{
    char dir[PATH_MAX];

    TRY(project_find(dir, e));
    if (snprintf(c->project_file, PATH_MAX, "%s/.npmrc", strcmp(dir, "/") == 0 ? "" : dir) >=
        PATH_MAX)
        return err_set(e, ERR_LIMIT, "the working directory's name is too long");
    return is_file_of_user(c, c->project_file)
               ? 0
               : load_file(c, NPM_LAYER_PROJECT, c->project_file, e);
}

/* The project comes last: its file may choose none of the others, and what it may say depends on
 * them. */
static int load(struct npm_config *c, enum npm_config_reach reach, struct err *e)
{
    if (*JERBOA_REGISTRY)
        TRY(add(c, NPM_LAYER_BUILTIN, "registry", JERBOA_REGISTRY, e));
    TRY(load_env(c, e));
    TRY(load_user(c, e));
    TRY(load_global(c, e));
    return reach == NPM_CONFIG_PROJECT ? load_project(c, e) : 0;
}

struct npm_config *npm_config_load(enum npm_config_reach reach, struct err *e)
{
    struct npm_config *c = calloc(1, sizeof *c);
    struct err         failed = {0};

    if (!c)
        abort();
    if (load(c, reach, &failed) == 0)
        return c;
    if (e)
        *e = failed;
    npm_config_free(c);
    return NULL;
}

void npm_config_free(struct npm_config *c)
{
    if (!c)
        return;
    for (struct npm_setting *s = c->list; s < c->list + c->n; s++) {
        free(s->key);
        free(s->value);
    }
    free(c->list);
    free(c);
}
