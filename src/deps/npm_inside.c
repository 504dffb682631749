#include "deps/npm_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/url.h"
#include "deps/bundle.h"
#include "engine/native.h"

enum { REGISTRIES_MAX = 64, NPMRC_MAX = 1 << 16 };

/* ---- registries ---- */

/* The name and the port that a URL's host has: "localhost:4873", "[::1]". */
static uint16_t split_host(const struct url *url, char ret_name[URL_HOST_MAX])
{
    const char *end = strrchr(url->host, ']'), *colon = strchr(end ? end : url->host, ':');
    const char *name = url->host + (end ? 1 : 0);
    int64_t     port = url->is_tls ? 443 : 80;

    if (colon)
        str_parse_count(colon + 1, 1, UINT16_MAX, &port, NULL);
    if (!end)
        end = colon ? colon : url->host + strlen(url->host);
    snprintf(ret_name, URL_HOST_MAX, "%.*s", (int)(end - name), name);
    return (uint16_t)port;
}

static int add_place(struct npm_inside *n, const char *address, uint16_t port, struct err *e)
{
    struct engine_place *p = n->places;

    for (; p < n->places + n->n_places; p++)
        if (p->port == port && strcmp(p->address, address) == 0)
            return 0;
    if (n->n_places == ENGINE_PLACES_MAX)
        return err_set(e, ERR_LIMIT, "npm is configured for too many registries on this machine");
    n->n_places++;
    p->port = port;
    return str_copy(p->address, sizeof p->address, address);
}

/* A name of two addresses: the server of the registry may have either. */
static int add_places(struct npm_inside *n, const struct url *url, struct err *e)
{
    char     name[URL_HOST_MAX];
    uint16_t port = split_host(url, name);

    if (strcmp(name, "localhost") != 0)
        return add_place(n, name, port, e);
    TRY(add_place(n, "127.0.0.1", port, e));
    return add_place(n, "::1", port, e);
}

static int find_places(struct npm_inside *n, const struct npm_config *config, struct err *e)
{
    const char *list[REGISTRIES_MAX];
    size_t      count = npm_config_registries(config, list, REGISTRIES_MAX);
    struct url  url;

    for (size_t i = 0; i < count; i++)
        if (url_parse(list[i], &url, NULL) == 0 && url.is_loopback)
            TRY(add_places(n, &url, e));
    return 0;
}

static bool is_reached(const struct policy *policy, const struct url *registry)
{
    char      name[URL_HOST_MAX];
    uint16_t  port = split_host(registry, name);
    struct ip address;

    return ip_parse(name, &address) == 0 ? policy_allows_address_at(policy, &address, port)
                                         : policy_allows_name_at(policy, name, port);
}

static int name_registry(struct npm_inside *n, const struct npm_config *config,
                         const struct policy *policy, const char **env, struct err *e)
{
    char       text[NPM_CONFIG_URL_MAX], shown[NPM_CONFIG_URL_MAX];
    struct url url;

    TRY(npm_config_registry(config, "npm", text, e));
    TRY(url_parse(text, &url, e));
    url_show(&url, shown, sizeof shown);
    snprintf(n->registry, sizeof n->registry, "npm_config_registry=%s", shown);
    env[0] = n->registry;
    if (!is_reached(policy, &url)) /* npm would try again for more than a minute */
        env[1] = "npm_config_fetch_retries=0";
    return 0;
}

/* Not by the environment: a shell drops a variable that is named "npm_config_@scope:registry". */
static int name_scopes(struct npm_inside *n, const struct npm_config *config, struct err *e)
{
    struct npm_scope   scopes[REGISTRIES_MAX];
    size_t             count = npm_config_scopes(config, scopes, REGISTRIES_MAX);
    autobuf struct buf text;
    struct url         url;
    char               shown[URL_HOST_MAX + URL_PATH_MAX + 16];

    buf_init(&text, NPMRC_MAX);
    for (size_t i = 0; i < count; i++) {
        TRY(url_parse(scopes[i].registry, &url, e));
        url_show(&url, shown, sizeof shown);
        if (buf_printf(&text, "%s:registry=\"%s\"\n", scopes[i].name, shown) < 0)
            return err_set(e, ERR_LIMIT, "npm's configuration has too many scopes");
    }
    if (count > 0)
        n->npmrc = strdup(buf_text(&text));
    return 0;
}

/* ---- certificates ---- */

static bool is_known(const struct npm_inside *n, const char *real)
{
    const char    *bundle = native_bundle();
    autofree char *system = bundle ? realpath(bundle, NULL) : NULL;

    if (system && strcmp(system, real) == 0)
        return true;
    for (size_t i = 0; n->files[i]; i++)
        if (strcmp(n->files[i], real) == 0)
            return true;
    return false;
}

static void add_file(struct npm_inside *n, const char *what, const char *path)
{
    autofree char *real = path && *path ? realpath(path, NULL) : NULL;
    size_t         i = 0;

    if (!path || !*path)
        return;
    if (!real || !native_is_readable(real)) {
        fprintf(stderr, "jerboa: warning: %s %s cannot be read: its certificates are not trusted\n",
                what, path);
        return;
    }
    if (is_known(n, real))
        return;
    while (n->files[i])
        i++;
    n->files[i] = real;
    real = NULL;
}

static void find_certificates(struct npm_inside *n, const struct npm_config *config)
{
    struct npm_trust trust = npm_config_trust(config);

    add_file(n, "NODE_EXTRA_CA_CERTS", getenv("NODE_EXTRA_CA_CERTS"));
    add_file(n, "npm's cafile", trust.cafile);
    n->ca = trust.ca ? strdup(trust.ca) : NULL;
}

/* ---- the whole ---- */

int npm_inside_init(struct npm_inside *n, const struct npm_config *config,
                    const struct policy *policy, struct err *e)
{
    const char **env = n->environment;

    *n = (struct npm_inside){0};
    TRY(name_registry(n, config, policy, env, e));
    TRY(find_places(n, config, e));
    TRY(name_scopes(n, config, e));
    find_certificates(n, config);
    while (*env)
        env++;
    if (n->npmrc)
        *env++ = "npm_config_globalconfig=/etc/npmrc";
    if (npm_config_trust(config).any)
        *env++ = "npm_config_strict_ssl=false";
    return 0;
}

void npm_inside_done(struct npm_inside *n)
{
    free(n->npmrc);
    free(n->ca);
    for (size_t i = 0; n->files[i]; i++)
        free(n->files[i]);
    if (*n->bundle)
        fd_close(&n->bundle_fd);
}

int npm_inside_bundle(struct npm_inside *n, struct err *e)
{
    if (!n->files[0] && !n->ca && !native_bundle_is_named())
        return 0;
    n->bundle_fd = bundle_ensure((const char *const *)n->files, n->ca, n->bundle, e);
    return n->bundle_fd < 0 ? -1 : 0;
}

void npm_inside_plan(const struct npm_inside *n, struct engine_spec *spec)
{
    spec->host_loopback = n->places;
    spec->n_host_loopback = n->n_places;
    spec->npmrc = n->npmrc;
    spec->certificates = (const char *const *)n->files;
    spec->certificates_text = n->ca;
    spec->bundle = *n->bundle ? n->bundle : NULL;
}
