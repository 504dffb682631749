/* Theory of operation. A question (resolving) is answered from the cache or the hosts file, or it
 * waits for an asking: the two queries, A and AAAA, to the name servers, which all questions for
 * one name share. Programs ask for both kinds of address at once, and each is such a question. An
 * asking that nobody waits for any more is cancelled. */
#include "egress/resolver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "loop/later.h"

enum {
    ENTRIES_MAX = 4096,
    BUCKETS = 1024,
    KEPT_MAX_S = 300,
    KEPT_MIN_S = 1,
    FAILURE_KEPT_S = 5,
    HOSTS_MAX = 1 << 20,
};

struct entry {
    SLIST_ENTRY(entry) next;
    char                 name[DNS_NAME_MAX + 1];
    int64_t              until_ms;
    struct dns_addresses found;
};

struct resolver {
    struct event_base *base;
    struct upstream   *upstream;
    const char        *hosts_path;
    SLIST_HEAD(bucket, entry) buckets[BUCKETS];
    size_t n;
    LIST_HEAD(askings, asking) askings;
};

struct asking {
    LIST_ENTRY(asking) entry;
    struct resolver       *r;
    char                   name[DNS_NAME_MAX + 1];
    struct dns_addresses   found;
    struct dns_addresses   six;     /* waits here: IPv4 goes first, whichever answer does */
    struct upstream_query *asks[2]; /* for A and AAAA; NULL: answered */
    LIST_HEAD(waiting, resolving) waiting;
};

struct resolving {
    LIST_ENTRY(resolving) entry; /* of those who wait, while there is an asking */
    struct asking       *asking; /* NULL: found is there */
    struct dns_addresses found;
    struct later         later;
    resolver_found      *tell;
    void                *owner;
};

/* ---- the cache ---- */

static struct bucket *bucket_of(struct resolver *r, const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return &r->buckets[hash % BUCKETS];
}

static void forget_all(struct resolver *r)
{
    for (size_t i = 0; i < BUCKETS; i++)
        while (!SLIST_EMPTY(&r->buckets[i])) {
            struct entry *e = SLIST_FIRST(&r->buckets[i]);
            SLIST_REMOVE_HEAD(&r->buckets[i], next);
            free(e);
        }
    r->n = 0;
}

static struct entry *find_entry(struct resolver *r, const char *name)
{
    struct entry *e;

    SLIST_FOREACH(e, bucket_of(r, name), next)
    if (strcmp(e->name, name) == 0)
        break;
    return e;
}

static void keep(struct resolver *r, const char *name, const struct dns_addresses *found)
{
    struct entry *e = find_entry(r, name);
    int64_t       seconds = found->n == 0 ? FAILURE_KEPT_S : found->ttl_s;

    if (!e) {
        if (r->n == ENTRIES_MAX)
            forget_all(r);
        e = calloc(1, sizeof *e);
        if (!e)
            abort();
        str_copy(e->name, sizeof e->name, name);
        SLIST_INSERT_HEAD(bucket_of(r, name), e, next);
        r->n++;
    }
    e->found = *found;
    if (seconds < KEPT_MIN_S)
        seconds = KEPT_MIN_S;
    if (seconds > KEPT_MAX_S)
        seconds = KEPT_MAX_S;
    e->until_ms = clock_ms() + seconds * 1000;
}

/* ---- the hosts file: small, and read at each question that the cache has not ---- */

static void take_host_line(char *line, const char *name, struct dns_addresses *ret)
{
    static const char blanks[] = " \t\r";
    char             *save = NULL, *word;
    struct ip         address;

    line[strcspn(line, "#")] = '\0';
    word = strtok_r(line, blanks, &save);
    if (!word || ip_parse(word, &address) < 0)
        return;
    while ((word = strtok_r(NULL, blanks, &save)))
        if (strcasecmp(word, name) == 0 && ret->n < DNS_ADDRESSES_MAX)
            ret->list[ret->n++] = address;
}

static void look_into_hosts(const char *path, const char *name, struct dns_addresses *ret)
{
    autofd int     fd = open(path, O_RDONLY | O_CLOEXEC);
    autofree char *text = NULL;
    char          *line, *save = NULL;
    size_t         size;

    if (fd < 0 || fd_read_text(fd, HOSTS_MAX, &text, &size, NULL) < 0)
        return;
    for (char *rest = text; (line = strtok_r(rest, "\n", &save)); rest = NULL)
        take_host_line(line, name, ret);
}

/* ---- asking ---- */

static void add(struct dns_addresses *to, const struct dns_addresses *from)
{
    for (size_t i = 0; i < from->n && to->n < DNS_ADDRESSES_MAX; i++) {
        if (to->n == 0 || from->ttl_s < to->ttl_s)
            to->ttl_s = from->ttl_s;
        to->list[to->n++] = from->list[i];
    }
}

static void asking_free(struct asking *a)
{
    for (size_t i = 0; i < 2; i++)
        if (a->asks[i])
            upstream_cancel(a->asks[i]);
    LIST_REMOVE(a, entry);
    free(a);
}

static void stop_waiting(struct resolving *q)
{
    LIST_REMOVE(q, entry);
    q->asking = NULL;
}

static void finish(struct asking *a)
{
    struct resolving *q;

    add(&a->found, &a->six);
    keep(a->r, a->name, &a->found);
    while ((q = LIST_FIRST(&a->waiting))) {
        stop_waiting(q);
        q->found = a->found;
        later_ask(&q->later);
    }
    asking_free(a);
}

/* Of two codes the one that counts when there is no address: that nobody knows is more than that
 * there is none. */
static enum dns_code graver(enum dns_code a, enum dns_code b)
{
    return a == DNS_SERVER_FAILED || b == DNS_OK ? a : b;
}

static void take_answer(struct asking *a, int which, const uint8_t *answer, size_t size)
{
    struct dns_addresses got = {.code = DNS_SERVER_FAILED};

    a->asks[which] = NULL;
    if (answer && dns_read_addresses(answer, size, which ? DNS_AAAA : DNS_A, &got) < 0)
        got = (struct dns_addresses){.code = DNS_SERVER_FAILED};
    if (!dns_is_settled(got.code))
        got.code = DNS_SERVER_FAILED; /* in whatever words */
    add(which ? &a->six : &a->found, &got);
    a->found.code = graver(a->found.code, got.code);
    if (!a->asks[!which])
        finish(a);
}

static void on_four(void *owner, uint8_t *answer, size_t size)
{
    take_answer(owner, 0, answer, size);
}

static void on_six(void *owner, uint8_t *answer, size_t size)
{
    take_answer(owner, 1, answer, size);
}

static struct asking *ask(struct resolver *r, const char *name)
{
    uint8_t        query[DNS_MESSAGE_MAX];
    size_t         size = dns_ask(0, name, DNS_A, query);
    struct asking *a = calloc(1, sizeof *a);

    if (!a)
        abort();
    a->r = r;
    str_copy(a->name, sizeof a->name, name);
    LIST_INSERT_HEAD(&r->askings, a, entry);
    a->asks[0] = upstream_ask(r->upstream, query, size, on_four, a);
    size = dns_ask(0, name, DNS_AAAA, query);
    a->asks[1] = upstream_ask(r->upstream, query, size, on_six, a);
    return a;
}

static struct asking *find_asking(struct resolver *r, const char *name)
{
    struct asking *a;

    LIST_FOREACH (a, &r->askings, entry)
        if (strcmp(a->name, name) == 0)
            break;
    return a;
}

/* ---- questions ---- */

void resolver_cancel(struct resolving *q)
{
    struct asking *a = q->asking;

    if (a)
        stop_waiting(q);
    if (a && LIST_EMPTY(&a->waiting))
        asking_free(a);
    later_done(&q->later);
    free(q);
}

static void step(void *owner)
{
    struct resolving    *q = owner;
    resolver_found      *tell = q->tell;
    void                *its_owner = q->owner;
    struct dns_addresses found = q->found;

    resolver_cancel(q);
    tell(its_owner, &found);
}

static void wait_for(struct resolving *q, struct resolver *r, const char *name)
{
    struct asking *a = find_asking(r, name);

    q->asking = a ? a : ask(r, name);
    LIST_INSERT_HEAD(&q->asking->waiting, q, entry);
}

struct resolving *resolver_find(struct resolver *r, const char *name, resolver_found *found,
                                void *owner)
{
    struct resolving   *q = calloc(1, sizeof *q);
    const struct entry *known = find_entry(r, name);
    bool                is_fresh = known && known->until_ms > clock_ms();

    if (!q || strlen(name) > DNS_NAME_MAX)
        abort();
    *q = (struct resolving){.tell = found, .owner = owner};
    later_init(&q->later, r->base, step, q);
    if (is_fresh)
        q->found = known->found;
    else
        look_into_hosts(r->hosts_path, name, &q->found);
    if (q->found.n > 0 || is_fresh)
        later_ask(&q->later);
    else
        wait_for(q, r, name);
    return q;
}

struct resolver *resolver_new(struct event_base *base, const struct resolver_files *files)
{
    struct resolver *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->base = base;
    r->hosts_path = files && files->hosts ? files->hosts : "/etc/hosts";
    r->upstream =
        upstream_new(base, files && files->resolv_conf ? files->resolv_conf : "/etc/resolv.conf");
    return r;
}

void resolver_free(struct resolver *r)
{
    if (!r)
        return;
    forget_all(r);
    upstream_free(r->upstream);
    free(r);
}

struct upstream *resolver_upstream(struct resolver *r)
{
    return r->upstream;
}
