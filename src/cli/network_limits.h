/* network_limits - the options that bound a sandbox's network: rows for the table of a verb, their
 * defaults, and what they may be. */
#pragma once

#include "base/options.h"
#include "egress/egress.h"

/* Where the option is stored, if the struct egress_limits stands at `at` in the verb's options. */
#define NETWORK_LIMITS_AT(at, member) ((at) + offsetof(struct egress_limits, member))

/* clang-format off */
#define NETWORK_LIMITS_ROWS(at)                                                                    \
    {"connections", 0, OPTION_COUNT, NETWORK_LIMITS_AT(at, connections), "N",                      \
     "connections out at once, at most 256 (256)"},                                                             \
    {"connect-rate", 0, OPTION_COUNT, NETWORK_LIMITS_AT(at, connects_per_second), "N",             \
     "new connections a second, twice that in a burst (100)"},                                     \
    {"lookup-rate", 0, OPTION_COUNT, NETWORK_LIMITS_AT(at, lookups_per_second), "N",               \
     "lookups of names a second, twice that in a burst (500)"},                                    \
    {"byte-rate", 0, OPTION_SIZE, NETWORK_LIMITS_AT(at, bytes_per_second), "SIZE",                 \
     "bytes a second of all connections, both ways together (0: no limit)"},                       \
    {"connection-idle", 0, OPTION_DURATION, NETWORK_LIMITS_AT(at, idle_ms), "TIME",                \
     "close a connection that is silent for this long (10m)"}
/* clang-format on */

extern const struct egress_limits network_limits_defaults;

int network_limits_check(const struct egress_limits *l, struct err *e);
