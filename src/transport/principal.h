/* principal - one who asks over HTTP, and how much of the server is in use for it. Whoever comes
 * without a token, where none is needed, is the one with the empty name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
    PRINCIPAL_NAME_MAX = 64,
    PRINCIPAL_SESSIONS_MAX = 1000, /* of one that has a name */
    PRINCIPAL_REQUESTS_MAX = 1000,
    PRINCIPAL_BYTES_MAX = 64 << 20,
    ANYONE_REQUESTS_MAX = 16384, /* of all who have none; sessions: as many as there may be */
    ANYONE_BYTES_MAX = 256 << 20,
};

struct principal {
    char   name[PRINCIPAL_NAME_MAX + 1];
    size_t sessions; /* legacy ones */
    size_t requests; /* that are open */
    size_t bytes;    /* of their bodies */
};

static inline bool principal_has_all_sessions(const struct principal *p)
{
    return p->name[0] && p->sessions >= PRINCIPAL_SESSIONS_MAX;
}

/* Whether so many more requests would be too much; one of any size is always allowed. */
static inline bool principal_is_busy(const struct principal *p, size_t requests, size_t bytes)
{
    size_t requests_max = p->name[0] ? PRINCIPAL_REQUESTS_MAX : ANYONE_REQUESTS_MAX;
    size_t bytes_max = p->name[0] ? PRINCIPAL_BYTES_MAX : ANYONE_BYTES_MAX;

    return p->requests + requests > requests_max ||
           (p->requests > 0 && p->bytes + bytes > bytes_max);
}
