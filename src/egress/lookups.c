#include "egress/lookups.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

enum { LOOKUPS_MAX = 128 };

struct lookup {
    LIST_ENTRY(lookup) entry;
    struct egress         *e;
    uint32_t               id;
    uint8_t                message[DNS_QUESTION_MAX];
    struct dns_query       query;
    size_t                 most;
    struct resolving      *resolving;
    struct upstream_query *forwarded;
    lookups_tell          *tell;
    void                  *owner;
};

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

/* ---- answers ---- */

/* `bytes` has room for EDNS. */
static void deliver(struct lookup *l, uint8_t *bytes, size_t size)
{
    lookups_tell *tell = l->tell;
    void         *owner = l->owner;
    uint32_t      id = l->id;

    size = dns_fit(bytes, size, &l->query, l->most);
    lookup_free(l);
    tell(owner, id, bytes, size);
}

static void answer(struct lookup *l, enum dns_code code, const struct ip *address)
{
    uint8_t bytes[DNS_MESSAGE_MAX];

    deliver(l, bytes, dns_answer(l->message, &l->query, code, address, bytes));
}

static void fail(struct lookup *l)
{
    refused_note(&l->e->refused, l->query.name, 0, "not resolved", refused_servers_failed);
    answer(l, DNS_SERVER_FAILED, NULL);
}

static void on_found(void *owner, const struct dns_addresses *found)
{
    struct lookup       *l = owner;
    struct egress       *e = l->e;
    struct dns_addresses to = *found;
    const char          *what;
    struct ip            bad, made_up;

    l->resolving = NULL;
    gates_keep_public(&e->gates, l->query.name, 0, &to, &bad, &what);
    if (to.n == 0 && what) {
        refused_note_special(&e->refused, l->query.name, 0, &bad, what);
        answer(l, DNS_NO_SUCH_NAME, NULL);
    } else if (to.n == 0 && found->code == DNS_SERVER_FAILED) {
        fail(l);
    } else if (to.n == 0) {
        answer(l, found->code, NULL);
    } else if (l->query.type == DNS_AAAA) {
        answer(l, DNS_OK, NULL); /* made-up addresses are IPv4 */
    } else if (names_take(e->names, l->query.name, &made_up) < 0) {
        refused_note(&e->refused, l->query.name, 0, "too many names", "a new sandbox");
        answer(l, DNS_SERVER_FAILED, NULL);
    } else {
        answer(l, DNS_OK, &made_up);
    }
}

static void on_forwarded(void *owner, uint8_t *bytes, size_t size)
{
    static uint8_t copy[DNS_ANSWER_MAX + DNS_EDNS]; /* one loop: nobody else is in here meanwhile */
    struct lookup *l = owner;

    l->forwarded = NULL;
    if (bytes)
        size = dns_drop_additional(bytes, size);
    if (!bytes || size == 0 || !dns_is_settled(dns_code(bytes))) {
        fail(l);
        return;
    }
    memcpy(copy, bytes, size);
    deliver(l, copy, size);
}

/* ---- the decision ---- */

/* Names that are not the internet's: of this machine, and of addresses. */
static bool is_local_name(const char *name)
{
    static const char *const ends[] = {"localhost", "arpa"};
    size_t                   length = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t n = strlen(ends[i]);
        if (str_ends(name, ends[i]) && (length == n || name[length - n - 1] == '.'))
            return true;
    }
    return false;
}

static void refuse_many(struct lookup *l)
{
    const struct egress *e = l->e;
    autofree char       *allow =
        str_format("wait: it may look up %lld names a second (--lookup-rate), %d at once",
                   (long long)e->limits.lookups_per_second, LOOKUPS_MAX);

    refused_note(&l->e->refused, l->query.name, 0, "too many lookups", allow);
    answer(l, DNS_REFUSED, NULL);
}

static void decide(struct lookup *l)
{
    struct egress       *e = l->e;
    const struct policy *objects = gates_object_to_lookup(&e->gates, l->query.name);

    if (e->n_lookups > LOOKUPS_MAX || !rate_take(&e->lookup_rate, clock_ms())) {
        refuse_many(l);
    } else if (is_local_name(l->query.name)) {
        answer(l, DNS_NO_SUCH_NAME, NULL);
    } else if (objects) {
        refused_note_policy(&e->refused, &e->gates, objects, l->query.name, 0);
        answer(l, DNS_NO_SUCH_NAME, NULL);
    } else if (l->query.type == DNS_A || l->query.type == DNS_AAAA) {
        l->resolving = resolver_find(e->resolver, l->query.name, on_found, l);
    } else if (l->query.type >= DNS_META && l->query.type <= DNS_ANY) {
        answer(l, DNS_REFUSED, NULL); /* ANY, AXFR … would tell addresses, private ones too */
    } else {
        l->forwarded = upstream_ask(resolver_upstream(e->resolver), l->message,
                                    l->query.question_end, on_forwarded, l);
    }
}

/* ---- the face ---- */

void lookups_ask(struct egress *e, const struct lookups_query *query)
{
    uint8_t        bytes[DNS_MESSAGE_MAX];
    struct lookup *l = calloc(1, sizeof *l);

    if (!l)
        abort();
    if (dns_parse_query(query->message, query->size, &l->query) < 0) {
        free(l);
        query->tell(query->owner, query->id, bytes,
                    dns_answer_bad(query->message, query->size, bytes));
        return;
    }
    l->e = e;
    l->id = query->id;
    l->most = query->most ? query->most : l->query.most;
    l->tell = query->tell;
    l->owner = query->owner;
    memcpy(l->message, query->message, l->query.question_end);
    /* Only the question goes on, so that nothing else of the message reaches a name server. */
    memset(l->message + 6, 0, 6);
    LIST_INSERT_HEAD(&e->lookups, l, entry);
    e->n_lookups++;
    decide(l);
}

void lookups_cancel(struct egress *e, const void *owner)
{
    struct lookup *l, *next;

    for (l = LIST_FIRST(&e->lookups); l; l = next) {
        next = LIST_NEXT(l, entry);
        if (l->owner == owner)
            lookup_free(l);
    }
}

void lookups_cancel_all(struct egress *e)
{
    while (!LIST_EMPTY(&e->lookups))
        lookup_free(LIST_FIRST(&e->lookups));
}
