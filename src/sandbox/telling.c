#include "sandbox/telling.h"

#include <string.h>

static struct trail *trail_of(const void *owner)
{
    const struct telling *t = owner;

    return t->trail;
}

static json_t *members_of(const struct telling *t)
{
    struct trail_subject s = t->subject(t->owner);

    return trail_members(&s);
}

/* ---- its connections ---- */

static json_t *members_of_seen(const struct telling *t, const struct egress_seen *c)
{
    json_t *m = members_of(t);

    json_object_set_new(m, "connection", json_integer(c->number));
    json_object_set_new(m, "host", json_text(c->host, strlen(c->host)));
    json_object_set_new(m, "address", json_string(c->address));
    json_object_set_new(m, "targetPort", json_integer(c->port));
    return m;
}

static bool on_may_connect(void *owner)
{
    return trail_is_well(trail_of(owner));
}

static bool on_connected(void *owner, const struct egress_seen *c)
{
    struct trail *t = trail_of(owner);

    return trail_allows(t, trail_write(t, TRAIL_CONNECTED, members_of_seen(owner, c), NULL));
}

static void on_connection_over(void *owner, const struct egress_seen *c)
{
    json_t *m = members_of_seen(owner, c);

    json_object_del(m, "call"); /* it may have begun in another one */
    json_object_set_new(m, "sentBytes", json_integer((json_int_t)c->sent_bytes));
    json_object_set_new(m, "receivedBytes", json_integer((json_int_t)c->received_bytes));
    json_object_set_new(m, "ms", json_integer(c->ms));
    trail_write(trail_of(owner), TRAIL_DISCONNECTED, m, NULL);
}

static void on_refused(void *owner, const char *host, uint16_t port, const char *rule)
{
    json_t *m = members_of(owner);

    json_object_set_new(m, "host", json_text(host, strlen(host)));
    json_object_set_new(m, "targetPort", port ? json_integer(port) : json_null());
    json_object_set_new(m, "rule", json_text(rule, strlen(rule)));
    trail_write(trail_of(owner), TRAIL_REFUSED, m, NULL);
}

static void on_more_refused(void *owner, int64_t n)
{
    json_t *m = members_of(owner);

    json_object_set_new(m, "refusals", json_integer(n));
    trail_write(trail_of(owner), TRAIL_MORE_REFUSED, m, NULL);
}

struct egress_watch telling_watch(struct telling *t)
{
    if (!t->trail)
        return (struct egress_watch){0};
    return (struct egress_watch){.owner = t,
                                 .may_connect = on_may_connect,
                                 .connected = on_connected,
                                 .over = on_connection_over,
                                 .refused = on_refused,
                                 .more_refused = on_more_refused};
}

/* ---- what ran in it ---- */

void telling_run(struct trail *t, const struct trail_subject *s, const struct telling_program *p,
                 const struct run_result *r)
{
    json_t *m;

    if (!t)
        return;
    m = trail_members(s);
    json_object_set_new(m, "program", json_string(p->kind));
    json_object_set_new(m, "number", p->number ? json_integer((json_int_t)p->number) : json_null());
    json_object_set_new(m, "verdict", json_string(verdict_name(r->verdict)));
    json_object_set_new(m, "exitCode",
                        r->facts.code >= 0 ? json_integer(r->facts.code) : json_null());
    json_object_set_new(m, "signal", r->facts.signal ? json_integer(r->facts.signal) : json_null());
    json_object_set_new(m, "wallMs", json_integer(r->wall_ms));
    json_object_set_new(m, "cpuMs", json_integer((json_int_t)(r->cpu_us / 1000)));
    json_object_set_new(m, "peakMemoryBytes",
                        r->peak_bytes ? json_integer((json_int_t)r->peak_bytes) : json_null());
    trail_write(t, TRAIL_RUN_ENDED, m, NULL);
}
