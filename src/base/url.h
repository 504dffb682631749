/* url - an http or https address, read so strictly that libcurl, which will connect to it, cannot
 * read it otherwise: what is spelt in an unusual way is no URL here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { URL_HOST_MAX = 264, URL_PATH_MAX = 2048 };

struct url {
    bool is_tls;
    bool is_loopback;        /* localhost, 127.x.x.x or [::1], by its letters */
    char host[URL_HOST_MAX]; /* lower case; with the port, unless it is the scheme's own */
    char path[URL_PATH_MAX]; /* without query and fragment; dot segments are refused */
};

/* Errors do not quote the text: it may hold a password. */
int  url_parse(const char *text, struct url *ret, struct err *e);
bool url_same_origin(const struct url *a, const struct url *b);
/* How a person may see it, "https://host/path": no user, no password. */
void url_show(const struct url *url, char *ret, size_t size);
