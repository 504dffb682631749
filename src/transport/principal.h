/* principal - one who asks over HTTP, and how much of the server is in use for it. Whoever comes
 * without a token, where none is needed, is the one with the empty name. */
#pragma once

#include <stddef.h>

enum {
    PRINCIPAL_NAME_MAX = 64,
    PRINCIPAL_SESSIONS_MAX = 1000, /* of one that has a name */
    PRINCIPAL_REQUESTS_MAX = 1000,
    ANYONE_REQUESTS_MAX = 16384, /* of all who have none; sessions: as many as there may be */
};

struct principal {
    char   name[PRINCIPAL_NAME_MAX + 1];
    size_t sessions; /* of the old era */
    size_t requests; /* that are open */
};

static inline size_t principal_requests_max(const struct principal *p)
{
    return p->name[0] ? PRINCIPAL_REQUESTS_MAX : ANYONE_REQUESTS_MAX;
}
