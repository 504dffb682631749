/* egress_private - what the files of egress share: one sandbox's connections, lookups, limits. */
#pragma once

#include <sys/queue.h>

#include "egress/egress.h"
#include "egress/gates.h"
#include "egress/meter.h"
#include "egress/names.h"
#include "egress/rate.h"
#include "egress/refused.h"
#include "loop/deadline.h"

enum { EGRESS_BUCKETS = 64 };

struct connection; /* connections.c */
struct lookup;     /* lookups.c */

struct egress {
    struct event_base       *base;
    struct resolver         *resolver;
    struct gates             gates;
    struct egress_limits     limits;
    const struct egress_ops *ops;
    void                    *owner;
    struct names            *names;
    LIST_HEAD(egress_bucket, connection) connections[EGRESS_BUCKETS];
    LIST_HEAD(egress_lookups, lookup) lookups;
    size_t              n_connections, n_lookups;
    uint32_t            last_id; /* numbers of init ascend */
    struct rate         connect_rate, lookup_rate;
    struct meter        meter;
    struct deadline     fill;
    struct refused      refused;
    struct egress_watch watch;
    json_t             *log;
    int64_t             log_more; /* connections that the log has no room for */
};

void egress_send(struct egress *e, enum frame_type type, uint32_t id, uint8_t stream,
                 const void *payload, size_t size);
