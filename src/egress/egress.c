/* Theory of operation. Frames of init come in here and are given to the two subjects:
 * connections.c, which lookups in a TCP connection are too, and lookups.c. Both ask the gates
 * (gates.c), the limits, the names that were given out; what they refuse is written down
 * (refused.c). */
#include "egress/egress.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "egress/connections.h"
#include "egress/lookups.h"

enum { METER_MS = 50 };

void egress_send(struct egress *e, enum frame_type type, uint32_t id, uint8_t stream,
                 const void *payload, size_t size)
{
    e->ops->send(e->owner, type, id, stream, payload, size);
}

/* ---- frames ---- */

static void tell_init(void *owner, uint32_t id, const uint8_t *answer, size_t size)
{
    if (size > 0)
        egress_send(owner, FRAME_FOUND, id, 0, answer, size);
}

static void on_lookup(struct egress *e, const struct frame *f)
{
    lookups_ask(e, &(struct lookups_query){.message = f->payload,
                                           .size = f->size,
                                           .id = f->channel,
                                           .tell = tell_init,
                                           .owner = e});
}

void egress_frame(struct egress *e, const struct frame *f)
{
    bool opens = f->type == FRAME_CONNECT || f->type == FRAME_LOOKUP;

    if (opens && (f->channel <= e->last_id || !(f->channel & CHANNEL_OF_INIT))) {
        e->ops->violated(e->owner, "the sandbox opened a channel that it may not open");
        return;
    }
    if (opens)
        e->last_id = f->channel;
    if (f->type == FRAME_CONNECT)
        connections_open(e, f);
    else if (f->type == FRAME_LOOKUP)
        on_lookup(e, f);
    else
        connections_frame(e, f);
}

/* ---- the rest of the face ---- */

void egress_go_on(struct egress *e)
{
    connections_go_on(e);
}

bool egress_is_sending(const struct egress *e)
{
    return connections_are_sending(e);
}

static void on_fill(void *owner)
{
    struct egress *e = owner;

    meter_fill(&e->meter, METER_MS);
    egress_go_on(e);
    deadline_set(&e->fill, METER_MS);
}

static int64_t or_default(int64_t wanted, int64_t value)
{
    return wanted ? wanted : value;
}

static struct egress_limits complete(const struct egress_limits *l)
{
    return (struct egress_limits){
        .connections = or_default(l->connections, EGRESS_CONNECTIONS),
        .connects_per_second = or_default(l->connects_per_second, EGRESS_CONNECTS_PER_SECOND),
        .lookups_per_second = or_default(l->lookups_per_second, EGRESS_LOOKUPS_PER_SECOND),
        .bytes_per_second = l->bytes_per_second,
        .idle_ms = or_default(l->idle_ms, EGRESS_IDLE_MS),
    };
}

struct egress *egress_new(struct event_base *base, const struct egress_spec *spec,
                          const struct egress_ops *ops, void *owner)
{
    struct egress *e = calloc(1, sizeof *e);
    int64_t        now = clock_ms();

    if (!e)
        abort();
    *e = (struct egress){.base = base,
                         .resolver = spec->resolver,
                         .gates = {spec->operator_policy, spec->policy},
                         .limits = complete(&spec->limits),
                         .ops = ops,
                         .owner = owner,
                         .watch = spec->watch,
                         .names = names_new(),
                         .log = json_array()};
    refused_init(&e->refused, &e->watch);
    rate_init(&e->connect_rate, e->limits.connects_per_second, now);
    rate_init(&e->lookup_rate, e->limits.lookups_per_second, now);
    e->meter.per_second = e->limits.bytes_per_second;
    deadline_init(&e->fill, base, on_fill, e);
    if (e->meter.per_second > 0)
        on_fill(e);
    return e;
}

void egress_free(struct egress *e)
{
    if (!e)
        return;
    connections_free(e);
    lookups_cancel_all(e);
    deadline_done(&e->fill);
    names_free(e->names);
    refused_done(&e->refused);
    json_decref(e->log);
    free(e);
}

void egress_set_policy(struct egress *e, const struct policy *policy)
{
    e->gates.policy = policy;
    connections_judge(e);
}

json_t *egress_take_refused(struct egress *e)
{
    return refused_take(&e->refused);
}

json_t *egress_log(struct egress *e)
{
    json_t        *list = json_copy(e->log); /* the rows are shared: they are completed later */
    autofree char *rest = str_format("and %lld more", (long long)e->log_more);

    if (e->log_more > 0)
        json_array_append_new(list, json_pack("{s:s}", "host", rest));
    return list;
}
