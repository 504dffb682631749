#include "base/url.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static bool is_plain(const char *text)
{
    for (const char *c = text; *c; c++)
        if (!isgraph((unsigned char)*c) || *c == '\\')
            return false;
    return true;
}

static bool is_loopback(const char *host)
{
    unsigned a, b, c, d;
    char     rest;

    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (sscanf(host, "%3u.%3u.%3u.%3u%c", &a, &b, &c, &d, &rest) == 4 && a == 127);
}

/* A name, an IPv4 address, or an IPv6 address in brackets; in lower case. */
static bool take_host(const char *text, size_t size, struct url *ret)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyz0123456789-._",
                      six[] = "0123456789abcdef:.";
    char *host = ret->host;

    if (size == 0 || size > 255)
        return false;
    for (size_t i = 0; i < size; i++)
        host[i] = (char)tolower((unsigned char)text[i]);
    host[size] = '\0';
    ret->is_loopback = is_loopback(host);
    if (host[0] != '[')
        return strspn(host, name) == size;
    return size > 3 && host[size - 1] == ']' && strspn(host + 1, six) == size - 2;
}

/* ":PORT" or nothing; the scheme's own is left out, so that two spellings are one. */
static bool take_port(const char *text, size_t size, struct url *ret)
{
    char    digits[8];
    int64_t port;

    if (size == 0)
        return true;
    if (text[0] != ':' || size > 6)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)size - 1, text + 1);
    if (str_parse_count(digits, 1, 65535, &port, NULL) < 0)
        return false;
    if (port != (ret->is_tls ? 443 : 80))
        snprintf(ret->host + strlen(ret->host), 8, ":%d", (int)port);
    return true;
}

/* "[USER[:PASSWORD]@]HOST[:PORT]" */
static bool take_authority(const char *text, size_t size, struct url *ret)
{
    const char *at = memchr(text, '@', size), *end = text + size, *colon;

    if (at && memchr(at + 1, '@', (size_t)(end - at - 1)))
        return false;
    if (at)
        text = at + 1;
    colon = *text == '[' ? memchr(text, ']', (size_t)(end - text)) : text;
    colon = colon ? memchr(colon, ':', (size_t)(end - colon)) : NULL;
    if (!colon)
        colon = end;
    return take_host(text, (size_t)(colon - text), ret) &&
           take_port(colon, (size_t)(end - colon), ret);
}

/* Dot segments have no place in the address of a registry, and two readers might disagree on them.
 */
static bool take_path(const char *text, struct url *ret)
{
    size_t size = strcspn(text, "?#");

    if (size >= sizeof ret->path)
        return false;
    snprintf(ret->path, sizeof ret->path, "%.*s", size ? (int)size : 1, size ? text : "/");
    for (const char *segment = strchr(ret->path, '/'); segment;
         segment = strchr(segment + 1, '/')) {
        size_t length = strcspn(segment + 1, "/");
        if ((length == 1 && segment[1] == '.') ||
            (length == 2 && segment[1] == '.' && segment[2] == '.'))
            return false;
    }
    return true;
}

int url_parse(const char *text, struct url *ret, struct err *e)
{
    bool        is_http = str_starts(text, "http://"), is_https = str_starts(text, "https://");
    const char *authority = strstr(text, "://");
    struct url  url = {.is_tls = is_https};
    size_t      size = authority ? strcspn(authority + 3, "/?#") : 0;

    if (!(is_http || is_https) || !authority || !is_plain(text) ||
        !take_authority(authority + 3, size, &url) || !take_path(authority + 3 + size, &url))
        return err_set(e, ERR_INVALID, "it is no http or https URL");
    *ret = url;
    return 0;
}

bool url_same_origin(const struct url *a, const struct url *b)
{
    return a->is_tls == b->is_tls && strcmp(a->host, b->host) == 0;
}

void url_show(const struct url *url, char *ret, size_t size)
{
    snprintf(ret, size, "%s://%s%s", url->is_tls ? "https" : "http", url->host, url->path);
}
