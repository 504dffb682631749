#include "box/box_trail.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "box/box_private.h"

struct trail *box_trail(const struct box *b)
{
    return b->all->spec.trail;
}

struct trail_subject box_subject(const struct box *b)
{
    struct trail_subject s = {0};

    trail_set_owner(&s, b->owner);
    trail_set_sandbox(&s, b->id);
    if (b->line && b->line->is_on && b->line->call)
        snprintf(s.call, sizeof s.call, "%s", b->line->call);
    return s;
}

static json_t *members_of(const struct box *b)
{
    struct trail_subject s = box_subject(b);

    return trail_members(&s);
}

void box_tell_made(const struct box *b, const char *call)
{
    const struct native_spec *l = &b->all->spec.limits;
    json_t                   *m;

    if (!box_trail(b))
        return;
    m = members_of(b);
    if (call)
        json_object_set_new(m, "call", json_string(call));
    json_object_set_new(m, "image", json_text(b->image, strlen(b->image)));
    json_object_set_new(m, "policy", b->policy ? json_string(policy_name(b->policy)) : json_null());
    json_object_set_new(m, "files", json_boolean(b->files_dir != NULL));
    json_object_set_new(m, "memoryBytes", json_integer(l->memory_bytes));
    json_object_set_new(m, "cpusMilli", json_integer(l->cpus_milli));
    json_object_set_new(m, "pids", json_integer(l->pids));
    json_object_set_new(m, "diskBytes", json_integer(l->disk_bytes));
    trail_write(box_trail(b), TRAIL_SANDBOX_MADE, m, NULL);
}

/* Of what was made ahead and never handed out nothing is told. */
void box_tell_stopped(const struct box *b)
{
    const char *why = b->why ? b->why : b->err.kind ? b->err.msg : "it ended";
    json_t     *m;

    if (!box_trail(b) || !b->is_somebodys)
        return;
    m = members_of(b);
    json_object_del(m, "call");
    json_object_set_new(m, "why", json_text(why, strlen(why)));
    json_object_set_new(m, "ms", json_integer(clock_ms() - b->made_ms));
    trail_write(box_trail(b), TRAIL_SANDBOX_STOPPED, m, NULL);
}

static json_t *members_of_seen(const struct box *b, const struct egress_seen *c)
{
    json_t *m = members_of(b);

    json_object_set_new(m, "connection", json_integer(c->number));
    json_object_set_new(m, "host", json_text(c->host, strlen(c->host)));
    json_object_set_new(m, "address", json_string(c->address));
    json_object_set_new(m, "targetPort", json_integer(c->port));
    return m;
}

static bool on_may_connect(void *owner)
{
    return trail_is_well(box_trail(owner));
}

static void on_connected(void *owner, const struct egress_seen *c)
{
    trail_write(box_trail(owner), TRAIL_CONNECTED, members_of_seen(owner, c), NULL);
}

static void on_connection_over(void *owner, const struct egress_seen *c)
{
    json_t *m = members_of_seen(owner, c);

    json_object_del(m, "call"); /* it may have begun in another one */
    json_object_set_new(m, "sentBytes", json_integer((json_int_t)c->sent_bytes));
    json_object_set_new(m, "receivedBytes", json_integer((json_int_t)c->received_bytes));
    json_object_set_new(m, "ms", json_integer(c->ms));
    trail_write(box_trail(owner), TRAIL_DISCONNECTED, m, NULL);
}

static void on_refused(void *owner, const char *host, uint16_t port, const char *rule)
{
    json_t *m = members_of(owner);

    json_object_set_new(m, "host", json_text(host, strlen(host)));
    json_object_set_new(m, "targetPort", port ? json_integer(port) : json_null());
    json_object_set_new(m, "rule", json_text(rule, strlen(rule)));
    trail_write(box_trail(owner), TRAIL_REFUSED, m, NULL);
}

static void on_more_refused(void *owner, int64_t n)
{
    json_t *m = members_of(owner);

    json_object_set_new(m, "refusals", json_integer(n));
    trail_write(box_trail(owner), TRAIL_MORE_REFUSED, m, NULL);
}

struct egress_watch box_watch(struct box *b)
{
    if (!box_trail(b))
        return (struct egress_watch){0};
    return (struct egress_watch){.owner = b,
                                 .may_connect = on_may_connect,
                                 .connected = on_connected,
                                 .over = on_connection_over,
                                 .refused = on_refused,
                                 .more_refused = on_more_refused};
}

/* ---- what ran in it ---- */

void box_tell_run(struct trail *t, const struct trail_subject *s, const struct box_program *p,
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
    json_object_set_new(m, "peakMemoryBytes", json_integer((json_int_t)r->peak_bytes));
    trail_write(t, TRAIL_RUN_ENDED, m, NULL);
}
