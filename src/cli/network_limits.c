#include "cli/network_limits.h"

enum { RATE_MIN = 1024, IDLE_MIN_MS = 100, IDLE_MAX_MS = 24 * 3600 * 1000 };

const struct egress_limits network_limits_defaults = {
    .connections = EGRESS_CONNECTIONS,
    .connects_per_second = EGRESS_CONNECTS_PER_SECOND,
    .lookups_per_second = EGRESS_LOOKUPS_PER_SECOND,
    .idle_ms = EGRESS_IDLE_MS,
};

int network_limits_check(const struct egress_limits *l, struct err *e)
{
    if (l->connections > EGRESS_CONNECTIONS)
        return err_set(e, ERR_INVALID, "--connections must be at most %d: a sandbox holds no more",
                       EGRESS_CONNECTIONS);
    if (l->bytes_per_second != 0 && l->bytes_per_second < RATE_MIN)
        return err_set(e, ERR_INVALID, "--byte-rate must be at least 1k, or 0 for no limit");
    if (l->idle_ms < IDLE_MIN_MS || l->idle_ms > IDLE_MAX_MS)
        return err_set(e, ERR_INVALID, "--connection-idle must be at least 100ms and at most 24h");
    return 0;
}
