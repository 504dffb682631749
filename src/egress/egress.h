/* egress - the connections and lookups of one sandbox, decided and carried out by the server.
 *
 * Frames of init's own channels come in, frames for them go out through `send`; a frame that breaks
 * the grammar is told by `violated`, and then nothing more is to be given to it. Each connection
 * must pass two policies, the operator's and the sandbox's own, so that the second can never be
 * wider. What was refused is remembered, with its rule and the way to allow it. */
#pragma once

#include <event2/event.h>

#include "base/json.h"
#include "egress/policy.h"
#include "egress/resolver.h"
#include "egress/watch.h"
#include "pipe/frame.h"

struct egress;

struct egress_ops {
    void (*send)(void *owner, enum frame_type type, uint32_t channel, uint8_t stream,
                 const void *payload, size_t size);
    bool (*has_room)(void *owner); /* for DATA; when it has again, egress_go_on is due */
    void (*violated)(void *owner, const char *sentence);
};

enum {
    EGRESS_CONNECTIONS = 256, /* and no more than that: init has room for a few beyond */
    EGRESS_CONNECTS_PER_SECOND = 100,
    EGRESS_LOOKUPS_PER_SECOND = 500,
    EGRESS_IDLE_MS = 10 * 60 * 1000,
};

/* Of one sandbox. Zeros are the defaults above. */
struct egress_limits {
    int64_t connections;         /* at once */
    int64_t connects_per_second; /* with bursts of twice that */
    int64_t lookups_per_second;  /* the same */
    int64_t bytes_per_second;    /* both ways together; 0: no limit */
    int64_t idle_ms;             /* of a silent connection */
};

struct egress_spec {
    struct resolver     *resolver; /* borrowed, like the policies */
    const struct policy *operator_policy;
    const struct policy *policy; /* the sandbox's; NULL: the operator's alone */
    struct egress_limits limits;
    struct egress_watch  watch;
};

struct egress *egress_new(struct event_base *base, const struct egress_spec *spec,
                          const struct egress_ops *ops, void *owner);
void           egress_free(struct egress *e);

void egress_frame(struct egress *e, const struct frame *f);
void egress_go_on(struct egress *e);
/* Something that code has sent is still on its way. */
bool egress_is_sending(const struct egress *e);
/* The sandbox's own policy from now on; connections that it does not allow are reset. The one
 * before may be freed then. See policy_check_within. */
void egress_set_policy(struct egress *e, const struct policy *policy);

/* What was refused or failed since the last time: [{host, port, rule, allow}]; port is null when a
 * name was refused before any was known. Beyond a hundred, the last row's host is "and N more". The
 * caller releases. */
json_t *egress_take_refused(struct egress *e);
/* All connections that were made: [{host, port, address, sentBytes, receivedBytes, ms}]. The last
 * three come when it is over. Beyond a thousand, the last row is {host: "and N more"}. The caller
 * releases. */
json_t *egress_log(struct egress *e);
