#include "npm/npm_config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"
#include "npm/npm_config_private.h"
#include "npm/npmrc.h"

/* ---- settings and their names ---- */

const char *const npm_credential_keys[NPM_CREDENTIALS] = {"_authToken", "_auth", "username",
                                                          "_password"};

const struct npm_setting *npm_config_find(const struct npm_config *c, const char *key)
{
    const struct npm_setting *best = NULL;

    for (const struct npm_setting *s = c->list; s < c->list + c->n; s++)
        if ((!best || s->layer >= best->layer) && strcmp(s->key, key) == 0)
            best = s;
    return best;
}

const char *npm_config_credential(const char *key)
{
    const char *colon = strrchr(key, ':');

    if (!str_starts(key, "//") || !colon)
        return NULL;
    for (size_t i = 0; i < NPM_CREDENTIALS; i++)
        if (strcmp(colon + 1, npm_credential_keys[i]) == 0)
            return colon;
    return NULL;
}

bool npm_config_names_registry(const char *key)
{
    return strcmp(key, "registry") == 0 || (*key == '@' && str_ends(key, ":registry"));
}

bool npm_config_is_below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);

    while (n > 0 && prefix[n - 1] == '/')
        n--;
    return strncmp(path, prefix, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* ---- the questions ---- */

const char *npm_config_note(const struct npm_config *c)
{
    return c->note;
}

const char *npm_config_get(const struct npm_config *c, const char *key)
{
    const struct npm_setting *s = npm_config_find(c, key);

    return s && *s->value && strcmp(s->value, "null") != 0 ? s->value : NULL;
}

static int refuse_variable(const struct npm_config *c, const struct npm_setting *s, struct err *e)
{
    return err_set(e, ERR_INVALID,
                   "%.60s in %.100s holds a ${VARIABLE}: that counts only for registries which "
                   "your own npmrc names",
                   s->key, c->project_file);
}

static const struct npm_setting *find_registry(const struct npm_config *c, const char *package)
{
    const char               *slash = *package == '@' ? strchr(package, '/') : NULL;
    autofree char            *key = NULL;
    const struct npm_setting *scoped;

    if (!slash)
        return npm_config_find(c, "registry");
    key = str_format("%.*s:registry", (int)(slash - package), package);
    scoped = npm_config_find(c, key);
    return scoped ? scoped : npm_config_find(c, "registry");
}

int npm_config_registry(const struct npm_config *c, const char *package,
                        char ret[NPM_CONFIG_URL_MAX], struct err *e)
{
    const struct npm_setting *s = find_registry(c, package);
    struct url                url;

    if (!s)
        return err_set(e, ERR_UNAVAILABLE,
                       "no npm registry is configured: set npm_config_registry to its URL");
    if (s->unexpanded)
        return refuse_variable(c, s, e);
    if (url_parse(s->value, &url, NULL) < 0 || strpbrk(s->value, "?#") ||
        str_copy(ret, NPM_CONFIG_URL_MAX - 1, s->value) < 0) /* not quoted: may hold a password */
        return err_set(e, ERR_INVALID,
                       "the configured npm registry (%.60s) is no http or https URL", s->key);
    if (s->layer == NPM_LAYER_PROJECT && !url.is_tls && !url.is_loopback)
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
        const struct npm_setting *s = &c->list[i];
        if (npm_config_names_registry(s->key) && s->layer != NPM_LAYER_PROJECT && !s->unexpanded &&
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
        const struct npm_setting *s = &c->list[i];
        const char               *colon = strrchr(s->key, ':');
        if (*s->key != '@' || !npm_config_names_registry(s->key) || s->layer == NPM_LAYER_PROJECT ||
            npm_config_find(c, s->key) != s || colon - s->key >= NPM_CONFIG_SCOPE_MAX ||
            url_parse(s->value, &url, NULL) < 0)
            continue;
        snprintf(ret[n].name, sizeof ret[n].name, "%.*s", (int)(colon - s->key), s->key);
        ret[n].registry = s->value;
        n += is_scope(ret[n].name) ? 1 : 0;
    }
    return n;
}

void npm_config_each_registry(const struct npm_config *c,
                              void (*take)(void *owner, const char *key, const char *value),
                              void *owner)
{
    for (const struct npm_setting *s = c->list; s < c->list + c->n; s++) {
        bool counts =
            s == npm_config_find(c, s->key) && s->layer != NPM_LAYER_PROJECT && !s->unexpanded;
        if (counts && *s->value &&
            (npm_config_names_registry(s->key) || npm_config_credential(s->key)))
            take(owner, s->key, s->value);
    }
}

/* One credential of one place, "//host/path/". *ret_value is NULL when there is none, or when a
 * variable in it is not set. */
static int find_credential(const struct npm_config *c, const char *place, const char *name,
                           const char **ret_value, struct err *e)
{
    autofree char            *key = str_format("%s:%s", place, name);
    const struct npm_setting *s = npm_config_find(c, key);

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
    const char *value[NPM_CREDENTIALS];

    for (size_t i = 0; i < NPM_CREDENTIALS; i++)
        TRY(find_credential(c, place, npm_credential_keys[i], &value[i], e));
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

    for (const struct npm_setting *s = c->list; s < c->list + c->n; s++) {
        const char *colon = npm_config_credential(s->key), *variable;
        if (!colon || s->unexpanded || !npmrc_has_variable(s->value))
            continue;
        autofree char *place = str_format("%.*s", (int)(colon - s->key), s->key);
        variable = strstr(s->value, "${");
        if (!npm_config_is_below(address, place) || !variable)
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
    static const char *const  variables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    const struct npm_setting *file = npm_config_find(c, "cafile"), *ca = npm_config_find(c, "ca");
    struct npm_trust          trust = {.any = is_no(npm_config_get(c, "strict-ssl"))};

    trust.cafile = npm_config_get(c, "cafile");
    trust.ca = npm_config_get(c, "ca");
    if (trust.cafile && access(trust.cafile, F_OK) < 0)
        trust.cafile = NULL; /* as npm */
    if (trust.cafile && trust.ca && file && ca &&
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
