/* resolver - names to addresses, for all sandboxes of a server: the machine's hosts file first,
 * then its name servers, with a cache. Addresses are told, not judged. */
#pragma once

#include <event2/event.h>

#include "egress/dns.h"
#include "egress/upstream.h"

struct resolver;

struct resolver_files {
    const char *hosts, *resolv_conf; /* NULL: those of /etc */
};

struct resolver *resolver_new(struct event_base *base, const struct resolver_files *files);
void             resolver_free(struct resolver *r); /* after its questions */
struct upstream *resolver_upstream(struct resolver *r);

struct resolving;

/* Called once, from the top of the loop; the question is gone then. With no address, the code tells
 * why. */
typedef void resolver_found(void *owner, const struct dns_addresses *found);

/* `name` is one that dns_parse_query could have given. */
struct resolving *resolver_find(struct resolver *r, const char *name, resolver_found *found,
                                void *owner);
void              resolver_cancel(struct resolving *q);
