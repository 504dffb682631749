#include "deps/sources.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"

struct writing {
    struct buf *text;
    bool        is_full;
};

static void hash_registry(void *owner, const char *key, const char *value)
{
    struct url url;
    char       shown[URL_HOST_MAX + URL_PATH_MAX + 16];

    if (str_starts(key, "//") || url_parse(value, &url, NULL) < 0)
        return;
    url_show(&url, shown, sizeof shown); /* a password that changes is no other registry */
    sha256_add(owner, key, strlen(key) + 1);
    sha256_add(owner, shown, strlen(shown) + 1);
}

void sources_identity(const struct npm_config *c, const char *installer,
                      char ret[SOURCES_IDENTITY_SIZE])
{
    struct sha256 h;
    char          hex[SHA256_HEX_SIZE];

    sha256_init(&h);
    npm_config_each_registry(c, hash_registry, &h);
    sha256_hex(&h, hex);
    snprintf(ret, SOURCES_IDENTITY_SIZE, "%.16s-%.16s", installer, hex);
}

/* In quotes when it must be: ; and # begin a comment there. */
static void write_setting(void *owner, const char *key, const char *value)
{
    struct writing  *w = owner;
    autojson json_t *text = json_string(value);
    autofree char   *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    bool             is_plain = !strpbrk(value, ";#\"'\\ \t\r\n");

    if (!is_plain && !quoted)
        return; /* not UTF-8: no registry would take it */
    if (buf_printf(w->text, "%s=%s\n", key, is_plain ? value : quoted) < 0)
        w->is_full = true;
}

int sources_npmrc(const struct npm_config *c, struct buf *ret, struct err *e)
{
    struct writing w = {.text = ret};

    npm_config_each_registry(c, write_setting, &w);
    if (npm_config_trust(c).any && buf_printf(ret, "strict-ssl=false\n") < 0)
        w.is_full = true;
    return w.is_full ? err_set(e, ERR_LIMIT, "npm's configuration is too long") : 0;
}

const char *sources_proxy(const struct npm_config *c)
{
    char       registry[NPM_CONFIG_URL_MAX];
    struct url url;

    if (npm_config_registry(c, "npm", registry, NULL) < 0 || url_parse(registry, &url, NULL) < 0 ||
        url.is_loopback)
        return NULL;
    return npm_config_proxy(c, &url);
}
