/* http - GET over libcurl, with the bounds that make a hostile or dead server harmless.
 *
 * Only http and https, and never from https to http; five redirects; ten seconds to connect, thirty
 * without progress; a maximum on the body as it is handed on, so a compressed one cannot swell.
 * There is no limit on the whole: a slow line that moves may take its time, and a person watches.
 *
 * Credentials, trust and proxies come from npm's configuration. Each hop of a redirect is asked
 * with the credentials of its own path, and with none when it leads to another origin.
 *
 * ERR_UNAVAILABLE: no answer, or the server said that it cannot now. ERR_NOT_FOUND: 404. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "npm/npm_config.h"

struct http;

struct http_request {
    const char *url;
    const char *accept; /* media types; such an answer may come compressed. NULL: the bytes as is */
    int64_t     from;   /* ask for the bytes from here on; the server may send all the same */
    int64_t     max_bytes; /* of the whole */
    /* Before the first byte: where in the whole it stands, `from` or 0. May be NULL. */
    int (*begin)(void *owner, int64_t at, struct err *e);
    /* total_bytes is that of the whole, -1 while the server does not tell. */
    int (*take)(void *owner, const void *data, size_t size, int64_t total_bytes, struct err *e);
    void *owner;
};

struct http *http_new(const struct npm_config *config); /* borrowed */
void         http_free(struct http *h);
int          http_get(struct http *h, const struct http_request *r, struct err *e);
