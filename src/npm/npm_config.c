/* Settings are a list, in which layer and place decide who counts: what comes later in a higher
 * layer. Nothing is interpreted while it is loaded but variables and paths; the questions at the
 * end of this file do that. */
#include "npm/npm_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "config.h"
#include "npm/npmrc.h"
#include "npm/project.h"

enum { NPMRC_MAX = 1 << 20, SETTINGS_MAX = 4096, VALUE_MAX = 1 << 18, REFUSED_MAX = 128 };

enum layer { LAYER_BUILTIN, LAYER_GLOBAL, LAYER_USER, LAYER_PROJECT, LAYER_ENV };

struct setting {
    enum layer layer;
    char      *key, *value;
    bool       unexpanded; /* of the project, with variables that it may not have */
};

struct npm_config {
    struct setting *list;
    size_t          n;
    char            project_file[PATH_MAX]; /* or "" */
    char            refused[REFUSED_MAX];   /* keys in it that do not count: "proxy, cafile" */
    char            note[REFUSED_MAX + ERR_MSG_MAX];
};

struct loading {
    struct npm_config *config;
    enum layer         layer;
    struct err        *err;
};

static const char *const credential_keys[] = {"_authToken", "_auth", "username", "_password"};

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), tail = strlen(end);

    return n >= tail && strcmp(s + n - tail, end) == 0;
}

/* ---- the list ---- */

static const struct setting *find(const struct npm_config *c, const char *key)
{
    const struct setting *best = NULL;

    for (const struct setting *s = c->list; s < c->list + c->n; s++)
        if ((!best || s->layer >= best->layer) && strcmp(s->key, key) == 0)
            best = s;
    return best;
}

static int add_take(struct npm_config *c, enum layer layer, char *key, char *value, struct err *e)
{
    if (c->n == SETTINGS_MAX) {
        free(key);
        free(value);
        return err_set(e, ERR_LIMIT, "npm's configuration has more than %d settings", SETTINGS_MAX);
    }
    c->list = reallocarray(c->list, c->n + 1, sizeof *c->list);
    if (!c->list)
        abort();
    c->list[c->n++] = (struct setting){.layer = layer, .key = key, .value = value};
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

static int add(struct npm_config *c, enum layer layer, const char *key, const char *value,
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
static bool add_to_list(struct npm_config *c, enum layer layer, const struct npmrc_line *line)
{
    const struct setting *before = find(c, line->key);
    char                 *joined;

    if (!line->is_list || !before || before->layer != layer)
        return false;
    joined = str_format("%s%s%s", before->value, strcmp(line->key, "ca") == 0 ? "\n\n" : ",",
                        line->value);
    free(before->value);
    c->list[before - c->list].value = joined;
    return true;
}

/* ---- the project's own rules ---- */

static const char *credential_of(const char *key)
{
    const char *colon = strrchr(key, ':');

    return str_starts(key, "//") && colon && is_one_of(colon + 1, credential_keys, 4) ? colon
                                                                                      : NULL;
}

static bool is_registry_key(const char *key)
{
    return strcmp(key, "registry") == 0 || (*key == '@' && ends_with(key, ":registry"));
}

static bool is_below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);

    while (n > 0 && prefix[n - 1] == '/')
        n--;
    return strncmp(path, prefix, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Whether the user's own layers name the registry to which these credentials would go. */
static bool is_users_registry(const struct npm_config *c, const char *key, const char *colon)
{
    autofree char *text = str_format("https:%.*s", (int)(colon - key), key);
    struct url     to, own;

    if (url_parse(text, &to, NULL) < 0)
        return false;
    for (const struct setting *s = c->list; s < c->list + c->n; s++)
        if (s->layer != LAYER_PROJECT && is_registry_key(s->key) &&
            url_parse(s->value, &own, NULL) == 0 && (own.is_tls || own.is_loopback) &&
            strcmp(own.host, to.host) == 0 && is_below(to.path, own.path))
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
    const char              *colon = credential_of(line->key);
    bool                     variable = npmrc_has_variable(line->value);

    if (is_one_of(line->key, refused, sizeof refused / sizeof *refused))
        note_refused(c, line->key);
    if ((!colon && !is_registry_key(line->key)) || npmrc_has_variable(line->key))
        return 0;
    if (!variable || (colon && is_users_registry(c, line->key, colon)))
        return add(c, LAYER_PROJECT, line->key, line->value, e);
    TRY(add_take(c, LAYER_PROJECT, strdup(line->key), strdup(line->value), e));
    c->list[c->n - 1].unexpanded = true;
    return 0;
}

/* ---- the layers ---- */

static int take_line(void *owner, const struct npmrc_line *line)
{
    struct loading *l = owner;

    if (l->layer == LAYER_PROJECT)
        return add_of_project(l->config, line, l->err);
    if (add_to_list(l->config, l->layer, line))
        return 0;
    return add(l->config, l->layer, line->key, line->value, l->err);
}

/* A file that is not there, or not ours to read, says nothing. */
static int load_file(struct npm_config *c, enum layer layer, const char *path, struct err *e)
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
        TRY(add(c, LAYER_ENV, key, equals + 1, e));
    }
    return 0;
}

static int load_user(struct npm_config *c, struct err *e)
{
    const char *configured = npm_config_get(c, "userconfig"), *home = getenv("HOME");
    char        path[PATH_MAX];

    if (configured)
        return load_file(c, LAYER_USER, configured, e);
    if (!home || snprintf(path, sizeof path, "%s/.npmrc", home) >= (int)sizeof path)
        return 0;
    return load_file(c, LAYER_USER, path, e);
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
    else if (program_on_path("node", ret) < 0)
        str_copy(ret, PATH_MAX, "/usr");
    else
        cut_parts(ret, 2); /* PREFIX/bin/node */
}

static int load_global(struct npm_config *c, struct err *e)
{
    const char *configured = npm_config_get(c, "globalconfig");
    char        prefix[PATH_MAX], path[PATH_MAX];

    if (configured)
        return load_file(c, LAYER_GLOBAL, configured, e);
    find_prefix(c, prefix);
    if (snprintf(path, sizeof path, "%s/etc/npmrc", prefix) >= (int)sizeof path)
        return 0;
    if (access(path, F_OK) < 0) /* some distributions keep it there */
        str_copy(path, sizeof path, "/etc/npmrc");
    return load_file(c, LAYER_GLOBAL, path, e);
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
    return is_file_of_user(c, c->project_file) ? 0
                                               : load_file(c, LAYER_PROJECT, c->project_file, e);
}

/* The project comes last: its file may choose none of the others, and what it may say depends on
 * them. */
static int load(struct npm_config *c, enum npm_config_reach reach, struct err *e)
{
    if (*JERBOA_REGISTRY)
        TRY(add(c, LAYER_BUILTIN, "registry", JERBOA_REGISTRY, e));
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
    for (struct setting *s = c->list; s < c->list + c->n; s++) {
        free(s->key);
        free(s->value);
    }
    free(c->list);
    free(c);
}

/* ---- the questions ---- */

const char *npm_config_note(const struct npm_config *c)
{
    return c->note;
}

const char *npm_config_get(const struct npm_config *c, const char *key)
{
    const struct setting *s = find(c, key);

    return s && *s->value && strcmp(s->value, "null") != 0 ? s->value : NULL;
}

static int refuse_variable(const struct npm_config *c, const struct setting *s, struct err *e)
{
    return err_set(e, ERR_INVALID,
                   "%.60s in %.100s holds a ${VARIABLE}: that counts only for registries which "
                   "your own npmrc names",
                   s->key, c->project_file);
}

static const struct setting *find_registry(const struct npm_config *c, const char *package)
{
    const char           *slash = *package == '@' ? strchr(package, '/') : NULL;
    autofree char        *key = NULL;
    const struct setting *scoped;

    if (!slash)
        return find(c, "registry");
    key = str_format("%.*s:registry", (int)(slash - package), package);
    scoped = find(c, key);
    return scoped ? scoped : find(c, "registry");
}

int npm_config_registry(const struct npm_config *c, const char *package,
                        char ret[NPM_CONFIG_URL_MAX], struct err *e)
{
    const struct setting *s = find_registry(c, package);
    struct url            url;

    if (!s)
        return err_set(e, ERR_UNAVAILABLE,
                       "no npm registry is configured: set npm_config_registry to its URL");
    if (s->unexpanded)
        return refuse_variable(c, s, e);
    if (url_parse(s->value, &url, NULL) < 0 || strpbrk(s->value, "?#") ||
        str_copy(ret, NPM_CONFIG_URL_MAX - 1, s->value) < 0) /* not quoted: may hold a password */
        return err_set(e, ERR_INVALID,
                       "the configured npm registry (%.60s) is no http or https URL", s->key);
    if (s->layer == LAYER_PROJECT && !url.is_tls && !url.is_loopback)
        return err_set(e, ERR_INVALID,
                       "%.60s in %.100s is not https: only your own npmrc may name such a registry",
                       s->key, c->project_file);
    if (ret[strlen(ret) - 1] != '/')
        str_copy(ret + strlen(ret), 2, "/");
    return 0;
}

size_t npm_config_registries(const struct npm_config *c, const char **ret, size_t max)
{
    struct url url;
    size_t     n = 0;

    for (size_t i = 0; i < c->n && n < max; i++) {
        const struct setting *s = &c->list[i];
        if (is_registry_key(s->key) && s->layer != LAYER_PROJECT && !s->unexpanded &&
            url_parse(s->value, &url, NULL) == 0)
            ret[n++] = s->value;
    }
    return n;
}

static bool is_scope(const char *name)
{
    return *name == '@' && name[1] &&
           strspn(name + 1, "abcdefghijklmnopqrstuvwxyz0123456789-._~") == strlen(name + 1);
}

size_t npm_config_scopes(const struct npm_config *c, struct npm_scope *ret, size_t max)
{
    struct url url;
    size_t     n = 0;

    for (size_t i = 0; i < c->n && n < max; i++) {
        const struct setting *s = &c->list[i];
        const char           *colon = strrchr(s->key, ':');
        if (*s->key != '@' || !is_registry_key(s->key) || s->layer == LAYER_PROJECT ||
            find(c, s->key) != s || colon - s->key >= NPM_CONFIG_SCOPE_MAX ||
            url_parse(s->value, &url, NULL) < 0)
            continue;
        snprintf(ret[n].name, sizeof ret[n].name, "%.*s", (int)(colon - s->key), s->key);
        ret[n].registry = s->value;
        n += is_scope(ret[n].name) ? 1 : 0;
    }
    return n;
}

/* One credential of one place, "//host/path/". *ret_value is NULL when there is none, or when a
 * variable in it is not set. */
void npm_config_each_registry(const struct npm_config *c,
                              void (*take)(void *owner, const char *key, const char *value),
                              void *owner)
{
    for (const struct setting *s = c->list; s < c->list + c->n; s++) {
        bool counts = s == find(c, s->key) && s->layer != LAYER_PROJECT && !s->unexpanded;
        if (counts && *s->value && (is_registry_key(s->key) || credential_of(s->key)))
            take(owner, s->key, s->value);
    }
}

static int find_credential(const struct npm_config *c, const char *place, const char *name,
                           const char **ret_value, struct err *e)
{
    autofree char        *key = str_format("%s:%s", place, name);
    const struct setting *s = find(c, key);

    *ret_value = NULL;
    if (s && s->unexpanded)
        return refuse_variable(c, s, e);
    if (s && *s->value && strcmp(s->value, "null") != 0 && !npmrc_has_variable(s->value))
        *ret_value = s->value;
    return 0;
}

static char *basic(const char *user, const char *password_base64)
{
    size_t            size;
    autofree uint8_t *password = base64_decode(password_base64, strlen(password_base64), &size);
    autofree char    *both = NULL, *encoded = NULL;

    if (!password)
        return NULL;
    both = str_format("%s:%.*s", user, (int)size, (const char *)password);
    encoded = base64_encode(both, strlen(both));
    return str_format("Basic %s", encoded);
}

/* What the place has, in npm's order; *ret is NULL when it has nothing. */
static int read_place(const struct npm_config *c, const char *place, char **ret, struct err *e)
{
    const char *value[4];

    for (size_t i = 0; i < 4; i++)
        TRY(find_credential(c, place, credential_keys[i], &value[i], e));
    *ret = NULL;
    if (value[0])
        *ret = str_format("Bearer %s", value[0]);
    else if (value[1])
        *ret = str_format("Basic %s", value[1]);
    else if (value[2] && value[3] && !(*ret = basic(value[2], value[3])))
        return err_set(e, ERR_INVALID, "the _password configured for %.100s is not base64", place);
    for (const char *p = *ret; p && *p; p++)
        if (*p != ' ' && !isgraph((unsigned char)*p)) {
            free(*ret);
            *ret = NULL;
            return err_set(e, ERR_INVALID,
                           "the credentials configured for %.100s hold a character that no header "
                           "may hold",
                           place);
        }
    return 0;
}

int npm_config_authorization(const struct npm_config *c, const struct url *url, char **ret,
                             struct err *e)
{
    autofree char *place = str_format("//%s%s", url->host, url->path);
    size_t         n = strlen(place);

    *ret = NULL;
    if (strcasestr(url->path, "%2e")) /* a server may take it for a dot, and the path for another */
        return 0;
    while (n > 2 && !*ret) {
        TRY(read_place(c, place, ret, e));
        if (place[n - 1] == '/') /* "//host/a/" and "//host/a" are both in use */
            n--;
        else
            while (n > 2 && place[n - 1] != '/')
                n--;
        place[n] = '\0';
    }
    return 0;
}

bool npm_config_unset_variable(const struct npm_config *c, const struct url *url, char *ret,
                               size_t size)
{
    static const char variable_letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    autofree char *address = str_format("//%s%s", url->host, url->path);

    for (const struct setting *s = c->list; s < c->list + c->n; s++) {
        const char *colon = credential_of(s->key), *variable;
        if (!colon || s->unexpanded || !npmrc_has_variable(s->value))
            continue;
        autofree char *place = str_format("%.*s", (int)(colon - s->key), s->key);
        variable = strstr(s->value, "${");
        if (!is_below(address, place) || !variable)
            continue;
        snprintf(ret, size, "%.*s", (int)strspn(variable + 2, variable_letters), variable + 2);
        return true;
    }
    return false;
}

static const char *from_any_case(const char *name)
{
    size_t n = strlen(name);

    for (char *const *v = environ; *v; v++)
        if (strncasecmp(*v, name, n) == 0 && (*v)[n] == '=' && (*v)[n + 1])
            return *v + n + 1;
    return NULL;
}

static bool is_proxy(const char *value)
{
    return value && strcmp(value, "false") != 0 && strcmp(value, "true") != 0;
}

/* npm's https-proxy serves plain http too, in the settings as in the environment. */
const char *npm_config_proxy(const struct npm_config *c, const struct url *url)
{
    static const char *const settings[] = {"https-proxy", "proxy"};
    static const char *const variables[] = {"https_proxy", "http_proxy", "proxy"};
    const char              *found = NULL;

    for (size_t i = 0; i < 2 && !is_proxy(found); i++)
        found = npm_config_get(c, settings[i]);
    for (size_t i = 0; i < (url->is_tls ? 1 : 3) && !is_proxy(found); i++)
        found = from_any_case(variables[i]);
    return is_proxy(found) ? found : NULL;
}

static bool is_no(const char *value)
{
    return value && (strcmp(value, "false") == 0 || strcmp(value, "0") == 0);
}

struct npm_trust npm_config_trust(const struct npm_config *c)
{
    /* After npm's own settings, the variables that curl and OpenSSL programs obey. */
    static const char *const variables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    const struct setting    *file = find(c, "cafile"), *ca = find(c, "ca");
    struct npm_trust         trust = {.any = is_no(npm_config_get(c, "strict-ssl"))};

    trust.cafile = npm_config_get(c, "cafile");
    trust.ca = npm_config_get(c, "ca");
    if (trust.cafile && access(trust.cafile, F_OK) < 0)
        trust.cafile = NULL; /* as npm */
    if (trust.cafile && trust.ca &&
        (ca->layer > file->layer || (ca->layer == file->layer && ca > file)))
        trust.cafile = NULL;
    if (trust.cafile)
        trust.ca = NULL;
    for (size_t i = 0; i < 2 && !trust.cafile && !trust.ca; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            trust.cafile = value;
    }
    return trust;
}
