#include "npm/npm_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "config.h"

enum { NPMRC_MAX = 1 << 20 };

struct slice {
    const char *p;
    size_t      size;
};

static struct slice trimmed(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    return (struct slice){p, (size_t)(end - p)};
}

/* As npm's ini reader: quotes are taken off, outside of them ; and # begin a comment. */
static struct slice value_of(struct slice s)
{
    if (s.size >= 2 && (*s.p == '"' || *s.p == '\'') && s.p[s.size - 1] == *s.p)
        return (struct slice){s.p + 1, s.size - 2};
    for (size_t i = 0; i < s.size; i++)
        if (s.p[i] == ';' || s.p[i] == '#')
            return trimmed(s.p, s.p + i);
    return s;
}

int npm_config_find(const char *text, const char *key, char *ret, size_t size, struct err *e)
{
    struct slice value = {"", 0};

    for (const char *line = text; *line;) {
        const char *end = line + strcspn(line, "\r\n");
        const char *equals = memchr(line, '=', (size_t)(end - line));
        if (equals) {
            struct slice name = trimmed(line, equals);
            if (name.size == strlen(key) && memcmp(name.p, key, name.size) == 0)
                value = value_of(trimmed(equals + 1, end));
        }
        line = end + strspn(end, "\r\n");
    }
    if (value.size >= size)
        return err_set(e, ERR_LIMIT, "%s is longer than %zu bytes", key, size - 1);
    memcpy(ret, value.p, value.size);
    ret[value.size] = '\0';
    return 0;
}

static const char *from_env(const char *key)
{
    char        name[64];
    const char *value;

    snprintf(name, sizeof name, "npm_config_%s", key);
    value = getenv(name);
    if (value && *value)
        return value;
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return getenv(name);
}

/* A file that is not there, or not ours to read, says nothing. */
static int from_file(const char *path, const char *key, char *ret, size_t size, struct err *e)
{
    struct err     unread = {0};
    autofree char *text = NULL;

    *ret = '\0';
    if (file_read_text(AT_FDCWD, path, NPMRC_MAX, &text, &unread) < 0) {
        if (unread.sys == ENOENT || unread.sys == EACCES || unread.sys == ENOTDIR)
            return 0;
        if (e)
            *e = unread;
        return -1;
    }
    if (npm_config_find(text, key, ret, size, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}

static int look_up(const char *key, char *ret, size_t size, struct err *e)
{
    const char *value = from_env(key), *home = getenv("HOME");
    char        path[PATH_MAX];

    *ret = '\0';
    if (value && *value) {
        if (str_copy(ret, size, value) < 0)
            return err_set(e, ERR_LIMIT, "npm_config_%s is longer than %zu bytes", key, size - 1);
        return 0;
    }
    if (home && snprintf(path, sizeof path, "%s/.npmrc", home) < (int)sizeof path)
        TRY(from_file(path, key, ret, size, e));
    return *ret ? 0 : from_file("/etc/npmrc", key, ret, size, e);
}

static bool is_url(const char *s)
{
    size_t scheme = str_starts(s, "https://") ? 8 : str_starts(s, "http://") ? 7 : 0;

    for (const char *c = s; *c; c++)
        if (!isgraph((unsigned char)*c))
            return false;
    return scheme > 0 && s[scheme] != '\0' && s[scheme] != '/' && !strpbrk(s, "?#");
}

static int load_registry(char *ret, size_t size, struct err *e)
{
    TRY(look_up("registry", ret, size - 1, e)); /* one byte for the slash */
    if (!*ret)
        snprintf(ret, size - 1, "%s", JERBOA_REGISTRY);
    if (!*ret)
        return err_set(e, ERR_UNAVAILABLE,
                       "no npm registry is configured: set npm_config_registry to its URL");
    if (!is_url(ret)) /* not quoted: it may hold a password */
        return err_set(e, ERR_INVALID, "the configured npm registry is no http or https URL");
    if (ret[strlen(ret) - 1] != '/')
        str_copy(ret + strlen(ret), 2, "/");
    return 0;
}

int npm_config_load(struct npm_config *ret, struct err *e)
{
    /* After npm's own setting, the variables that curl and OpenSSL programs obey. */
    static const char *const variables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};

    TRY(load_registry(ret->registry, sizeof ret->registry, e));
    TRY(look_up("cafile", ret->cafile, sizeof ret->cafile, e));
    for (size_t i = 0; i < 2 && !*ret->cafile; i++) {
        const char *file = getenv(variables[i]);
        if (file)
            str_copy(ret->cafile, sizeof ret->cafile, file);
    }
    return 0;
}
