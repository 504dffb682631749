/* Theory of operation. A connection passes gates in their order: which name it is (by its made-up
 * address) or that it is an address, limits, the policies, what the name resolves to at this
 * moment. The first gate that refuses resets it and writes down why. Bytes that come before the
 * outside answers wait within the window. A lookup passes the same policies; a name that they
 * refuse, or that has only addresses which would be refused, does not exist inside, so that
 * programs fail at once instead of trying again. */
#include "egress/egress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "egress/carry.h"
#include "egress/names.h"
#include "loop/deadline.h"
#include "pipe/message.h"

enum {
    CONNECTIONS = 256,
    CONNECTS_PER_SECOND = 100,
    IDLE_MS = 10 * 60 * 1000,
    LOOKUPS_MAX = 128,
    REFUSED_MAX = 100,
    LOG_MAX = 1000,
    METER_MS = 50,
    BUCKETS = 64,
    WORTH_A_FRAME = WINDOW_CONNECTION / 4,
};

struct connection {
    LIST_ENTRY(connection) entry;
    struct egress    *e;
    uint32_t          id;
    struct ip         address;                /* as code inside wanted it */
    char              host[DNS_NAME_MAX + 1]; /* its name, or the address as text */
    bool              by_name;
    uint16_t          port;
    struct resolving *resolving; /* or NULL */
    struct carry     *carry;     /* or NULL: not yet */
    struct buf        early;     /* bytes that came before there was a carry */
    bool              inside_ended;
    uint32_t          credit;   /* for data towards init */
    uint32_t          received; /* bytes from init, not given back yet */
    uint32_t          sent;     /* of those, taken by the outside */
    int64_t           began_ms;
    bool              made;
    json_t           *log; /* its line, or NULL: there are too many */
    uint64_t          bytes_out, bytes_in;
};

struct lookup {
    LIST_ENTRY(lookup) entry;
    struct egress         *e;
    uint32_t               id;
    uint8_t                message[DNS_MESSAGE_MAX];
    struct dns_query       query;
    struct resolving      *resolving;
    struct upstream_query *forwarded;
};

struct egress {
    struct event_base       *base;
    struct resolver         *resolver;
    const struct policy     *operator_policy, *policy; /* the second may be NULL */
    struct egress_limits     limits;
    const struct egress_ops *ops;
    void                    *owner;
    struct names            *names;
    LIST_HEAD(bucket, connection) connections[BUCKETS];
    LIST_HEAD(lookups, lookup) lookups;
    size_t          n_connections, n_lookups;
    uint32_t        last_id;                 /* numbers of init ascend */
    int64_t         tokens_milli, tokens_ms; /* connects that are still free; since when */
    struct meter    meter;
    struct deadline fill;
    json_t         *refused, *log;
};

static void send_frame(struct egress *e, enum frame_type type, uint32_t id, uint8_t stream,
                       const void *payload, size_t size)
{
    e->ops->send(e->owner, type, id, stream, payload, size);
}

/* ---- what was refused ---- */

static bool is_known(const json_t *list, const json_t *row)
{
    size_t  i;
    json_t *known;

    json_array_foreach ((json_t *)list, i, known)
        if (json_equal(known, (json_t *)row))
            return true;
    return false;
}

/* `port` 0: none is known. */
static void note(struct egress *e, const char *host, uint16_t port, const char *rule,
                 const char *allow)
{
    json_t *row = json_pack("{s:s, s:o, s:s, s:s}", "host", host, "port",
                            port ? json_integer(port) : json_null(), "rule", rule, "allow", allow);

    if (json_array_size(e->refused) < REFUSED_MAX && !is_known(e->refused, row))
        json_array_append(e->refused, row);
    json_decref(row);
}

static void note_policy(struct egress *e, const struct policy *by, const char *host, uint16_t port)
{
    autofree char *rule = str_format("network policy '%s'", policy_name(by));
    autofree char *at =
        port ? str_format(strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port) : strdup(host);
    autofree char *allow = str_format("--allow %s, or --network internet", at);

    note(e, host, port, rule, allow);
}

static void note_special(struct egress *e, const char *host, uint16_t port,
                         const struct ip *address, const char *what)
{
    char text[IP_TEXT];

    ip_format(address, text);
    autofree char *rule = str_format("%s address %s", what, text);
    note(e, host, port, rule, "--network host, which gives it all that this machine can reach");
}

/* ---- gates that connections and lookups share ---- */

/* The policy that says no, or NULL. */
static const struct policy *objector(const struct egress *e, const struct connection *c)
{
    const struct policy *both[] = {e->operator_policy, e->policy};

    for (size_t i = 0; i < 2; i++)
        if (both[i] && !(c->by_name ? policy_allows_name_at(both[i], c->host, c->port)
                                    : policy_allows_address_at(both[i], &c->address, c->port)))
            return both[i];
    return NULL;
}

static const struct policy *name_objector(const struct egress *e, const char *name)
{
    const struct policy *both[] = {e->operator_policy, e->policy};

    for (size_t i = 0; i < 2; i++)
        if (both[i] && !policy_allows_name(both[i], name))
            return both[i];
    return NULL;
}

/* Keeps the addresses that may be connected to; *ret_bad is the first that may not, or NULL. */
static void keep_allowed(const struct egress *e, const char *host, uint16_t port,
                         struct dns_addresses *list, struct ip *ret_bad, const char **ret_what)
{
    bool   exempt = policy_exempts(e->operator_policy, host, port);
    size_t kept = 0;

    *ret_what = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const char *what = exempt ? NULL : ip_special(&list->list[i]);
        if (!what) {
            list->list[kept++] = list->list[i];
        } else if (!*ret_what) {
            *ret_what = what;
            *ret_bad = list->list[i];
        }
    }
    list->n = kept;
}

/* ---- connections ---- */

static struct connection *find(struct egress *e, uint32_t id)
{
    struct connection *c;

    LIST_FOREACH (c, &e->connections[id % BUCKETS], entry)
        if (c->id == id)
            break;
    return c;
}

static void connection_free(struct connection *c)
{
    LIST_REMOVE(c, entry);
    c->e->n_connections--;
    if (c->resolving)
        resolver_cancel(c->resolving);
    carry_free(c->carry);
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
    send_frame(c->e, FRAME_RESET, c->id, 0, NULL, 0);
    connection_free(c);
}

static void on_carry_connected(void *owner, const struct ip *address)
{
    struct connection *c = owner;
    char               text[IP_TEXT];

    c->made = true;
    if (json_array_size(c->e->log) == LOG_MAX)
        return;
    ip_format(address, text);
    c->log = json_pack("{s:s, s:i, s:s}", "host", c->host, "port", c->port, "address", text);
    json_array_append(c->e->log, c->log);
}

static void on_carry_data(void *owner, const uint8_t *bytes, size_t size)
{
    struct connection *c = owner;

    c->credit -= (uint32_t)size;
    c->bytes_in += size;
    send_frame(c->e, FRAME_DATA, c->id, STREAM_IN, bytes, size);
}

static void on_carry_ended(void *owner)
{
    struct connection *c = owner;

    send_frame(c->e, FRAME_END, c->id, STREAM_IN, NULL, 0);
}

static void on_carry_sent(void *owner, size_t bytes)
{
    struct connection *c = owner;
    autobuf struct buf b;

    buf_init(&b, 16);
    c->sent += (uint32_t)bytes;
    c->bytes_out += bytes;
    if (c->sent < WORTH_A_FRAME || c->inside_ended)
        return;
    message_pack_u32(&b, c->sent);
    send_frame(c->e, FRAME_CREDIT, c->id, STREAM_OUT, b.data, b.size);
    c->received -= c->sent;
    c->sent = 0;
}

static void on_carry_over(void *owner, const struct err *e)
{
    struct connection *c = owner;

    if (!e->kind) {
        connection_free(c);
        return;
    }
    if (!c->made) { /* code inside sees only a reset, so say why: code inside sees only a reset, so
                       say why */
        autofree char *why = str_format("nothing to allow: %s", e->msg);
        note(c->e, c->host, c->port, "unreachable", why);
    }
    reset(c);
}

static bool on_carry_has_room(void *owner)
{
    const struct connection *c = owner;

    return c->e->ops->has_room(c->e->owner);
}

static const struct carry_ops carry_ops = {on_carry_connected, on_carry_data,     on_carry_ended,
                                           on_carry_sent,      on_carry_has_room, on_carry_over};

static void start_carry(struct connection *c, const struct dns_addresses *to)
{
    const struct carry_spec spec = {.addresses = to->list,
                                    .n = to->n,
                                    .port = c->port,
                                    .credit = c->credit,
                                    .idle_ms = c->e->limits.idle_ms,
                                    .meter = &c->e->meter};

    c->carry = carry_new(c->e->base, &spec, &carry_ops, c);
    carry_write(c->carry, c->early.data, c->early.size);
    buf_done(&c->early);
    buf_init(&c->early, 0);
    if (c->inside_ended)
        carry_end(c->carry);
}

static void go_to(struct connection *c, struct dns_addresses *to)
{
    const char *what;
    struct ip   bad;

    keep_allowed(c->e, c->host, c->port, to, &bad, &what);
    if (to->n > 0) {
        start_carry(c, to);
        return;
    }
    if (what)
        note_special(c->e, c->host, c->port, &bad, what);
    else
        note(c->e, c->host, c->port, "unreachable", "nothing to allow: the name has no address");
    reset(c);
}

static void on_resolved(void *owner, const struct dns_addresses *found)
{
    struct connection   *c = owner;
    struct dns_addresses to = *found;

    c->resolving = NULL;
    go_to(c, &to);
}

/* A token a connect, filled up with time, at most twice a second's. */
static bool take_token(struct egress *e)
{
    int64_t now = clock_ms(), most = 2000 * e->limits.connects_per_second;

    e->tokens_milli += (now - e->tokens_ms) * e->limits.connects_per_second;
    e->tokens_ms = now;
    if (e->tokens_milli > most)
        e->tokens_milli = most;
    if (e->tokens_milli < 1000)
        return false;
    e->tokens_milli -= 1000;
    return true;
}

/* A way to allow it that would not work is not told: no rule lets an address in that is not public.
 */
static void note_objection(struct connection *c, const struct policy *by)
{
    bool        exempt = policy_exempts(c->e->operator_policy, c->host, c->port);
    const char *what = c->by_name || exempt ? NULL : ip_special(&c->address);

    if (what)
        note_special(c->e, c->host, c->port, &c->address, what);
    else
        note_policy(c->e, by, c->host, c->port);
}

/* A registry of this machine that is configured as localhost: code inside connects to an address of
 * the name, and outside it may listen at the other one. */
static const char localhost[] = "localhost";

static bool is_localhost(const struct connection *c)
{
    const char *what = ip_special(&c->address);

    return what && strcmp(what, "loopback") == 0 &&
           policy_exempts(c->e->operator_policy, localhost, c->port);
}

static const struct dns_addresses localhost_addresses = {
    .list = {{{[10] = 0xff, 0xff, 127, 0, 0, 1}}, {{[15] = 1}}}, .n = 2};

/* Which name its address stands for, or the address itself. -1: a made-up one of nobody. */
static int set_host(struct connection *c)
{
    const char *name = names_find(c->e->names, &c->address);

    if (!name && names_is_made_up(&c->address))
        return -1;
    if (!name && is_localhost(c))
        name = localhost;
    c->by_name = name != NULL;
    if (name)
        return str_copy(c->host, sizeof c->host, name);
    ip_format(&c->address, c->host);
    return 0;
}

static void pass_gates(struct connection *c)
{
    struct egress       *e = c->e;
    const struct policy *objects;

    if (set_host(c) < 0) {
        ip_format(&c->address, c->host);
        note_special(e, c->host, c->port, &c->address, "made-up");
        reset(c);
    } else if (e->n_connections > (size_t)e->limits.connections || !take_token(e)) {
        autofree char *allow =
            str_format("wait: it has %lld connections at once, %lld new ones a "
                       "second",
                       (long long)e->limits.connections, (long long)e->limits.connects_per_second);
        note(e, c->host, c->port, "too many connections", allow);
        reset(c);
    } else if ((objects = objector(e, c))) {
        note_objection(c, objects);
        reset(c);
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

static void on_connect(struct egress *e, const struct frame *f)
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
    LIST_INSERT_HEAD(&e->connections[c->id % BUCKETS], c, entry);
    e->n_connections++;
    pass_gates(c);
}

static void on_data(struct connection *c, const struct frame *f)
{
    bool fits =
        f->stream == STREAM_OUT && !c->inside_ended && f->size <= WINDOW_CONNECTION - c->received;

    c->received += (uint32_t)f->size;
    if (fits)
        fits = c->carry ? carry_write(c->carry, f->payload, f->size) == 0
                        : buf_add(&c->early, f->payload, f->size) == 0;
    if (!fits)
        c->e->ops->violated(c->e->owner, "the sandbox sent data past an end or a window");
}

static void on_end(struct connection *c, const struct frame *f)
{
    if (f->stream != STREAM_OUT || c->inside_ended) {
        c->e->ops->violated(c->e->owner, "the sandbox ended a connection twice");
        return;
    }
    c->inside_ended = true;
    if (c->carry)
        carry_end(c->carry);
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
    if (c->carry)
        carry_credit(c->carry, bytes);
}

/* ---- lookups ---- */

static void lookup_free(struct lookup *l)
{
    LIST_REMOVE(l, entry);
    l->e->n_lookups--;
    if (l->resolving)
        resolver_cancel(l->resolving);
    if (l->forwarded)
        upstream_cancel(l->forwarded);
    free(l);
}

static void answer(struct lookup *l, enum dns_code code, const struct ip *address)
{
    uint8_t bytes[DNS_MESSAGE_MAX];
    size_t  size = dns_answer(l->message, &l->query, code, address, bytes);

    send_frame(l->e, FRAME_FOUND, l->id, 0, bytes, size);
    lookup_free(l);
}

static void on_found(void *owner, const struct dns_addresses *found)
{
    struct lookup       *l = owner;
    struct dns_addresses to = *found;
    const char          *what;
    struct ip            bad, made_up;

    l->resolving = NULL;
    keep_allowed(l->e, l->query.name, 0, &to, &bad, &what);
    if (to.n == 0 && what) {
        note_special(l->e, l->query.name, 0, &bad, what);
        answer(l, DNS_NO_SUCH_NAME, NULL);
    } else if (to.n == 0) {
        answer(l, found->code, NULL);
    } else if (names_take(l->e->names, l->query.name, &made_up) < 0) {
        note(l->e, l->query.name, 0, "too many names", "a new sandbox");
        answer(l, DNS_SERVER_FAILED, NULL);
    } else {
        answer(l, DNS_OK, &made_up);
    }
}

static void on_forwarded(void *owner, const uint8_t *bytes, size_t size)
{
    struct lookup *l = owner;

    l->forwarded = NULL;
    if (!bytes) {
        answer(l, DNS_SERVER_FAILED, NULL);
        return;
    }
    send_frame(l->e, FRAME_FOUND, l->id, 0, bytes, size);
    lookup_free(l);
}

/* Names that are not the internet's: of this machine, and of addresses. */
static bool is_local_name(const char *name)
{
    static const char *const ends[] = {"localhost", "arpa"};
    size_t                   length = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (length >= n && strcmp(name + length - n, ends[i]) == 0 &&
            (length == n || name[length - n - 1] == '.'))
            return true;
    }
    return false;
}

static void decide_lookup(struct lookup *l)
{
    struct egress       *e = l->e;
    const struct policy *objects = name_objector(e, l->query.name);

    if (is_local_name(l->query.name)) {
        answer(l, DNS_NO_SUCH_NAME, NULL);
    } else if (objects) {
        note_policy(e, objects, l->query.name, 0);
        answer(l, DNS_NO_SUCH_NAME, NULL);
    } else if (l->query.type == DNS_A) {
        l->resolving = resolver_find(e->resolver, l->query.name, on_found, l);
    } else if (l->query.type == DNS_AAAA) {
        answer(l, DNS_OK, NULL); /* made-up addresses are IPv4 */
    } else if (l->query.type == DNS_ANY) {
        answer(l, DNS_REFUSED, NULL); /* it would tell addresses, private ones too */
    } else {
        l->forwarded = upstream_ask(resolver_upstream(e->resolver), l->message,
                                    l->query.question_end, on_forwarded, l);
    }
}

static void on_lookup(struct egress *e, const struct frame *f)
{
    uint8_t        bytes[DNS_MESSAGE_MAX];
    size_t         size = dns_answer_bad(f->payload, f->size, bytes);
    struct lookup *l;

    l = calloc(1, sizeof *l);
    if (!l)
        abort();
    if (e->n_lookups == LOOKUPS_MAX || dns_parse_query(f->payload, f->size, &l->query) < 0) {
        free(l);
        if (size > 0)
            send_frame(e, FRAME_FOUND, f->channel, 0, bytes, size);
        return;
    }
    l->e = e;
    l->id = f->channel;
    memcpy(l->message, f->payload, f->size);
    /* Only the question goes on, so that nothing else of the message reaches a name server. */
    memset(l->message + 6, 0, 6);
    LIST_INSERT_HEAD(&e->lookups, l, entry);
    e->n_lookups++;
    decide_lookup(l);
}

/* ---- the face ---- */

void egress_frame(struct egress *e, const struct frame *f)
{
    bool               opens = f->type == FRAME_CONNECT || f->type == FRAME_LOOKUP;
    struct connection *c = opens ? NULL : find(e, f->channel);

    if (opens && (f->channel <= e->last_id || !(f->channel & CHANNEL_OF_INIT))) {
        e->ops->violated(e->owner, "the sandbox opened a channel that it may not open");
        return;
    }
    if (opens)
        e->last_id = f->channel;
    else if (!c)
        return; /* crossed its end */
    switch (f->type) {
    case FRAME_CONNECT:
        on_connect(e, f);
        break;
    case FRAME_LOOKUP:
        on_lookup(e, f);
        break;
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

void egress_go_on(struct egress *e)
{
    struct connection *c;

    for (size_t i = 0; i < BUCKETS; i++)
        LIST_FOREACH (c, &e->connections[i], entry)
            if (c->carry)
                carry_go_on(c->carry);
}

bool egress_is_sending(const struct egress *e)
{
    const struct connection *c;

    for (size_t i = 0; i < BUCKETS; i++)
        LIST_FOREACH (c, &e->connections[i], entry)
            if (!c->carry || carry_is_sending(c->carry))
                return true;
    return false;
}

static void on_fill(void *owner)
{
    struct egress *e = owner;

    meter_fill(&e->meter, METER_MS);
    egress_go_on(e);
    deadline_set(&e->fill, METER_MS);
}

struct egress *egress_new(struct event_base *base, const struct egress_spec *spec,
                          const struct egress_ops *ops, void *owner)
{
    struct egress        *e = calloc(1, sizeof *e);
    struct egress_limits *l;

    if (!e)
        abort();
    *e = (struct egress){.base = base,
                         .resolver = spec->resolver,
                         .operator_policy = spec->operator_policy,
                         .policy = spec->policy,
                         .limits = spec->limits,
                         .ops = ops,
                         .owner = owner,
                         .names = names_new(),
                         .tokens_ms = clock_ms(),
                         .refused = json_array(),
                         .log = json_array()};
    l = &e->limits;
    l->connections = l->connections ? l->connections : CONNECTIONS;
    l->connects_per_second = l->connects_per_second ? l->connects_per_second : CONNECTS_PER_SECOND;
    l->idle_ms = l->idle_ms ? l->idle_ms : IDLE_MS;
    e->tokens_milli = 2000 * l->connects_per_second;
    e->meter.per_second = l->bytes_per_second;
    deadline_init(&e->fill, base, on_fill, e);
    if (l->bytes_per_second > 0)
        on_fill(e);
    return e;
}

void egress_free(struct egress *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (!LIST_EMPTY(&e->connections[i]))
            connection_free(LIST_FIRST(&e->connections[i]));
    while (!LIST_EMPTY(&e->lookups))
        lookup_free(LIST_FIRST(&e->lookups));
    deadline_done(&e->fill);
    names_free(e->names);
    json_decref(e->refused);
    json_decref(e->log);
    free(e);
}

void egress_set_policy(struct egress *e, const struct policy *policy)
{
    struct connection   *c, *next;
    const struct policy *objects;

    e->policy = policy;
    for (size_t i = 0; i < BUCKETS; i++)
        for (c = LIST_FIRST(&e->connections[i]); c; c = next) {
            next = LIST_NEXT(c, entry);
            objects = objector(e, c);
            if (objects) {
                note_policy(e, objects, c->host, c->port);
                reset(c);
            }
        }
}

json_t *egress_take_refused(struct egress *e)
{
    json_t *taken = e->refused;

    e->refused = json_array();
    return taken;
}

json_t *egress_log(struct egress *e)
{
    return json_incref(e->log);
}
