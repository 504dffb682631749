/* Theory of operation. A connection passes gates in their order: limits, which name it is (by its
 * made-up address) or that it is an address, the policies, what the name resolves to at this
 * moment. The first gate that refuses resets it and writes down why. Bytes that come before the
 * outside answers wait within the window. Its far end is a carry, or, at port 53, a dns_stream:
 * whatever address code asks there, it is we who answer, as with datagrams. */
#include "egress/connections.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "egress/carry.h"
#include "egress/dns_stream.h"
#include "pipe/message.h"

enum { LOG_MAX = 1000, WORTH_A_FRAME = WINDOW_CONNECTION / 4 };

struct connection {
    LIST_ENTRY(connection) entry;
    struct egress     *e;
    uint32_t           id;
    struct ip          address;                /* as code inside wanted it */
    char               host[DNS_NAME_MAX + 1]; /* its name, or the address as text */
    bool               by_name;
    uint16_t           port;
    struct resolving  *resolving; /* or NULL */
    struct carry      *carry;     /* or NULL: not yet */
    struct dns_stream *dns;       /* instead of it; or NULL */
    struct buf         early;     /* bytes that came before there was a carry */
    bool               inside_ended;
    uint32_t           credit;   /* for data towards init */
    uint32_t           received; /* bytes from init, not given back yet */
    uint32_t           sent;     /* of those, taken by the outside */
    int64_t            began_ms;
    bool               made, is_untold; /* untold: who watches could not take it */
    char               to[IP_TEXT];     /* the address it was made to; "": to none outside */
    json_t            *log;             /* its line, or NULL: there are too many */
    uint64_t           bytes_out, bytes_in;
};

static struct connection *find(struct egress *e, uint32_t id)
{
    struct connection *c;

    LIST_FOREACH (c, &e->connections[id % EGRESS_BUCKETS], entry)
        if (c->id == id)
            break;
    return c;
}

static struct egress_seen look(const struct connection *c)
{
    return (struct egress_seen){.number = c->id & ~CHANNEL_OF_INIT,
                                .host = c->host,
                                .address = c->to,
                                .port = c->port,
                                .sent_bytes = c->bytes_out,
                                .received_bytes = c->bytes_in,
                                .ms = clock_ms() - c->began_ms};
}

static void connection_free(struct connection *c)
{
    LIST_REMOVE(c, entry);
    c->e->n_connections--;
    if (c->resolving)
        resolver_cancel(c->resolving);
    carry_free(c->carry);
    dns_stream_free(c->dns);
    if (*c->to && c->e->watch.over) {
        struct egress_seen seen = look(c);
        c->e->watch.over(c->e->watch.owner, &seen);
    }
    if (c->log) {
        json_object_set_new(c->log, "sentBytes", json_integer((json_int_t)c->bytes_out));
        json_object_set_new(c->log, "receivedBytes", json_integer((json_int_t)c->bytes_in));
        json_object_set_new(c->log, "ms", json_integer(clock_ms() - c->began_ms));
        json_decref(c->log);
    }
    buf_done(&c->early);
    free(c);
}

static void reset(struct connection *c)
{
    egress_send(c->e, FRAME_RESET, c->id, 0, NULL, 0);
    connection_free(c);
}

static void refuse(struct connection *c, const char *rule, const char *allow)
{
    refused_note(&c->e->refused, c->host, c->port, rule, allow);
    reset(c);
}

static void refuse_untold(struct connection *c)
{
    refuse(c, "audit log", "nothing to allow: the server's audit log cannot be written");
}

/* ---- what the far end tells ---- */

static bool on_connected(void *owner, const struct ip *address)
{
    struct connection *c = owner;

    ip_format(address, c->to);
    if (c->e->watch.connected) {
        struct egress_seen seen = look(c);
        c->is_untold = !c->e->watch.connected(c->e->watch.owner, &seen);
    }
    if (c->is_untold) {
        *c->to = '\0';
        return false;
    }
    c->made = true;
    if (json_array_size(c->e->log) == LOG_MAX) {
        c->e->log_more++;
        return true;
    }
    c->log = json_pack("{s:s, s:i, s:s}", "host", c->host, "port", c->port, "address", c->to);
    json_array_append(c->e->log, c->log);
    return true;
}

static void on_far_data(void *owner, const uint8_t *bytes, size_t size)
{
    struct connection *c = owner;

    c->credit -= (uint32_t)size;
    c->bytes_in += size;
    egress_send(c->e, FRAME_DATA, c->id, STREAM_IN, bytes, size);
}

static void on_far_ended(void *owner)
{
    struct connection *c = owner;

    egress_send(c->e, FRAME_END, c->id, STREAM_IN, NULL, 0);
}

static void on_sent(void *owner, size_t bytes)
{
    struct connection *c = owner;
    autobuf struct buf b;

    buf_init(&b, 16);
    c->sent += (uint32_t)bytes;
    c->bytes_out += bytes;
    if (c->sent < WORTH_A_FRAME || c->inside_ended)
        return;
    message_pack_u32(&b, c->sent);
    egress_send(c->e, FRAME_CREDIT, c->id, STREAM_OUT, b.data, b.size);
    c->received -= c->sent;
    c->sent = 0;
}

/* Code inside sees only a reset, so say why, unless the outside reset it. */
static void on_over(void *owner, const struct err *e)
{
    struct connection *c = owner;

    if (!e->kind) {
        connection_free(c);
    } else if (c->is_untold) {
        refuse_untold(c);
    } else if (!c->made) {
        autofree char *why = str_format("nothing to allow: %s", e->msg);
        refuse(c, "unreachable", why);
    } else if (e->kind == ERR_TIMEOUT && !c->dns) {
        autofree char *why = str_format("--connection-idle: it is closed after %g silent seconds",
                                        (double)c->e->limits.idle_ms / 1000);
        refuse(c, "idle", why);
    } else {
        reset(c);
    }
}

static bool on_has_room(void *owner)
{
    const struct connection *c = owner;

    return c->e->ops->has_room(c->e->owner);
}

static const struct carry_ops far_ops = {on_connected, on_far_data, on_far_ended,
                                         on_sent,      on_has_room, on_over};

/* ---- to the far end ---- */

static int far_write(struct connection *c, const uint8_t *bytes, size_t size)
{
    if (c->dns)
        return dns_stream_write(c->dns, bytes, size);
    return c->carry ? carry_write(c->carry, bytes, size) : buf_add(&c->early, bytes, size);
}

static void far_end(struct connection *c)
{
    if (c->dns)
        dns_stream_end(c->dns);
    else if (c->carry)
        carry_end(c->carry);
}

static void far_credit(struct connection *c, uint32_t bytes)
{
    if (c->dns)
        dns_stream_credit(c->dns, bytes);
    else if (c->carry)
        carry_credit(c->carry, bytes);
}

static void start_carry(struct connection *c, const struct dns_addresses *to)
{
    const struct carry_spec spec = {.addresses = to->list,
                                    .n = to->n,
                                    .port = c->port,
                                    .credit = c->credit,
                                    .idle_ms = c->e->limits.idle_ms,
                                    .meter = &c->e->meter};

    c->carry = carry_new(c->e->base, &spec, &far_ops, c);
    carry_write(c->carry, c->early.data, c->early.size);
    buf_done(&c->early);
    buf_init(&c->early, 0);
    if (c->inside_ended)
        carry_end(c->carry);
}

static void start_dns(struct connection *c)
{
    c->made = true;
    c->dns = dns_stream_new(c->e, c->credit, &far_ops, c);
}

/* ---- gates ---- */

static void go_to(struct connection *c, struct dns_addresses *to)
{
    const char *what;
    struct ip   bad;

    gates_keep_public(&c->e->gates, c->host, c->port, to, &bad, &what);
    if (to->n > 0) {
        start_carry(c, to);
    } else if (what) {
        refused_note_special(&c->e->refused, c->host, c->port, &bad, what);
        reset(c);
    } else {
        refuse(c, "unreachable",
               to->code == DNS_SERVER_FAILED ? refused_servers_failed
                                             : "nothing to allow: the name has no address");
    }
}

static void on_resolved(void *owner, const struct dns_addresses *found)
{
    struct connection   *c = owner;
    struct dns_addresses to = *found;

    c->resolving = NULL;
    go_to(c, &to);
}

static const struct policy *objector(const struct connection *c)
{
    return gates_object(&c->e->gates, c->host, c->by_name ? NULL : &c->address, c->port);
}

/* A way to allow it that would not work is not told: no rule lets an address in that is not public.
 */
static void object(struct connection *c, const struct policy *by)
{
    struct egress *e = c->e;
    const char *what = c->by_name ? NULL : gates_special(&e->gates, c->host, c->port, &c->address);

    if (what)
        refused_note_special(&e->refused, c->host, c->port, &c->address, what);
    else
        refused_note_policy(&e->refused, &e->gates, by, c->host, c->port);
    reset(c);
}

/* A registry of this machine that is configured as localhost: code inside connects to an address of
 * the name, and outside it may listen at the other one. */
static const char localhost[] = "localhost";

static bool is_localhost(const struct connection *c)
{
    const char *what = ip_special(&c->address);

    return what && strcmp(what, "loopback") == 0 &&
           policy_exempts(c->e->gates.operator_policy, localhost, c->port);
}

static const struct dns_addresses localhost_addresses = {
    .list = {{{[10] = 0xff, 0xff, 127, 0, 0, 1}}, {{[15] = 1}}}, .n = 2};

/* Which name its address stands for, or the address itself. -1: a made-up one of nobody. */
static int set_host(struct connection *c)
{
    const char *name = names_find(c->e->names, &c->address);

    if (!name && is_localhost(c))
        name = localhost;
    c->by_name = name != NULL;
    if (name)
        return str_copy(c->host, sizeof c->host, name);
    ip_format(&c->address, c->host);
    return names_is_made_up(&c->address) && c->port != DNS_PORT ? -1 : 0;
}

static void pass_gates(struct connection *c)
{
    struct egress              *e = c->e;
    const struct egress_limits *l = &e->limits;
    const struct policy        *objects;
    int                         known = set_host(c);

    if (e->n_connections > (size_t)l->connections) {
        autofree char *allow =
            str_format("wait: it has %lld at once (--connections)", (long long)l->connections);
        refuse(c, "too many connections", allow);
    } else if (!rate_take(&e->connect_rate, clock_ms())) {
        autofree char *allow = str_format("wait: it makes %lld a second (--connect-rate)",
                                          (long long)l->connects_per_second);
        refuse(c, "too many new connections", allow);
    } else if (c->port == DNS_PORT) {
        start_dns(c);
    } else if (e->watch.may_connect && !e->watch.may_connect(e->watch.owner)) {
        refuse_untold(c);
    } else if (known < 0) {
        refuse(c, "made-up address", "nothing to allow: it stands for no name of this sandbox");
    } else if (c->port == 0) {
        refuse(c, "port 0", "nothing to allow: nobody listens there");
    } else if ((objects = objector(c))) {
        object(c, objects);
    } else if (c->by_name && strcmp(c->host, localhost) == 0) {
        struct dns_addresses to = localhost_addresses;
        go_to(c, &to);
    } else if (c->by_name) {
        c->resolving = resolver_find(e->resolver, c->host, on_resolved, c);
    } else {
        struct dns_addresses to = {.list = {c->address}, .n = 1};
        go_to(c, &to);
    }
}

/* ---- frames ---- */

void connections_open(struct egress *e, const struct frame *f)
{
    struct message_connect m;
    struct connection     *c;

    if (message_unpack_connect(f, &m, NULL) < 0) {
        e->ops->violated(e->owner, "the sandbox sent a malformed connect");
        return;
    }
    c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct connection){.e = e,
                             .id = f->channel,
                             .port = m.port,
                             .credit = WINDOW_CONNECTION,
                             .began_ms = clock_ms()};
    memcpy(c->address.bytes, m.address, sizeof m.address);
    buf_init(&c->early, WINDOW_CONNECTION);
    LIST_INSERT_HEAD(&e->connections[c->id % EGRESS_BUCKETS], c, entry);
    e->n_connections++;
    pass_gates(c);
}

static void on_data(struct connection *c, const struct frame *f)
{
    bool fits =
        f->stream == STREAM_OUT && !c->inside_ended && f->size <= WINDOW_CONNECTION - c->received;

    c->received += (uint32_t)f->size;
    if (!fits || far_write(c, f->payload, f->size) < 0)
        c->e->ops->violated(c->e->owner, "the sandbox sent data past an end or a window");
}

static void on_end(struct connection *c, const struct frame *f)
{
    if (f->stream != STREAM_OUT || c->inside_ended) {
        c->e->ops->violated(c->e->owner, "the sandbox ended a connection twice");
        return;
    }
    c->inside_ended = true;
    far_end(c);
}

static void on_credit(struct connection *c, const struct frame *f)
{
    uint32_t bytes;

    if (message_unpack_u32(f, &bytes, NULL) < 0 || f->stream != STREAM_IN ||
        bytes > WINDOW_CONNECTION - c->credit) {
        c->e->ops->violated(c->e->owner, "the sandbox gave credit that it does not have");
        return;
    }
    c->credit += bytes;
    far_credit(c, bytes);
}

void connections_frame(struct egress *e, const struct frame *f)
{
    struct connection *c = find(e, f->channel);

    if (!c)
        return; /* crossed its end */
    switch (f->type) {
    case FRAME_DATA:
        on_data(c, f);
        break;
    case FRAME_END:
        on_end(c, f);
        break;
    case FRAME_CREDIT:
        on_credit(c, f);
        break;
    case FRAME_RESET:
        connection_free(c);
        break;
    default:
        e->ops->violated(e->owner, "the sandbox sent a frame that fits no connection");
    }
}

/* ---- all of them ---- */

void connections_go_on(struct egress *e)
{
    struct connection *c;

    for (size_t i = 0; i < EGRESS_BUCKETS; i++)
        LIST_FOREACH (c, &e->connections[i], entry)
            if (c->dns)
                dns_stream_go_on(c->dns);
            else if (c->carry)
                carry_go_on(c->carry);
}

bool connections_are_sending(const struct egress *e)
{
    const struct connection *c;

    for (size_t i = 0; i < EGRESS_BUCKETS; i++)
        LIST_FOREACH (c, &e->connections[i], entry)
            if (!c->dns && (!c->carry || carry_is_sending(c->carry)))
                return true;
    return false;
}

void connections_judge(struct egress *e)
{
    struct connection   *c, *next;
    const struct policy *objects;

    for (size_t i = 0; i < EGRESS_BUCKETS; i++)
        for (c = LIST_FIRST(&e->connections[i]); c; c = next) {
            next = LIST_NEXT(c, entry);
            objects = c->dns ? NULL : objector(c);
            if (objects)
                object(c, objects);
        }
}

void connections_free(struct egress *e)
{
    for (size_t i = 0; i < EGRESS_BUCKETS; i++)
        while (!LIST_EMPTY(&e->connections[i]))
            connection_free(LIST_FIRST(&e->connections[i]));
}
