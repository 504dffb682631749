/* origin - by which name were we asked, and from whose page? Pure: two strings against a list.
 *
 * A page of a stranger can make a browser send requests here (DNS rebinding: the stranger's name
 * resolves to 127.0.0.1). It cannot lie about Host and Origin, so these decide. */
#pragma once

#include <stdbool.h>

struct origin_rules {
    bool local_only; /* we listen where only this machine comes: Host is checked */
    const char *const
        *hosts; /* names besides localhost, 127.0.0.1 and [::1]; NULL at the end; or NULL */
};

/* A Host header (or the authority of an absolute URI): NAME[:PORT], any port. NULL: missing. */
bool origin_allows_host(const struct origin_rules *rules, const char *host);
/* An Origin header; NULL: no browser asks, which is fine. */
bool origin_allows(const struct origin_rules *rules, const char *origin);
