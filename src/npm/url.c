#include "npm/url.h"

#include <ctype.h>
#include <curl/curl.h>
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

static bool take_part(CURLU *u, CURLUPart part, unsigned flags, char *ret, size_t size)
{
    char *text = NULL;
    bool  fits;

    if (curl_url_get(u, part, &text, flags) != CURLUE_OK)
        return false;
    fits = str_copy(ret, size, text) == 0;
    curl_free(text);
    return fits;
}

static bool take_parts(CURLU *u, struct url *ret)
{
    char scheme[16], port[8];

    if (!take_part(u, CURLUPART_SCHEME, 0, scheme, sizeof scheme) ||
        !take_part(u, CURLUPART_HOST, 0, ret->host, sizeof ret->host - sizeof port - 1) ||
        !take_part(u, CURLUPART_PATH, 0, ret->path, sizeof ret->path))
        return false;
    ret->is_tls = strcmp(scheme, "https") == 0;
    if (!ret->is_tls && strcmp(scheme, "http") != 0)
        return false;
    for (char *c = ret->host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    ret->is_loopback = is_loopback(ret->host);
    if (take_part(u, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT, port, sizeof port))
        snprintf(ret->host + strlen(ret->host), sizeof port + 1, ":%s", port);
    return true;
}

int url_parse(const char *text, struct url *ret, struct err *e)
{
    CURLU     *u = curl_url();
    struct url url = {0};
    bool       good;

    good = u && is_plain(text) && (str_starts(text, "http://") || str_starts(text, "https://")) &&
           !strstr(text, ":///") && /* curl would take the path for the host */
           curl_url_set(u, CURLUPART_URL, text, 0) == CURLUE_OK && take_parts(u, &url);
    curl_url_cleanup(u);
    if (!good)
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
