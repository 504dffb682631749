/* upstream - one DNS query to the machine's own name servers, asynchronously.
 *
 * Each query has a socket of its own, connected to one server: the kernel's random port and our
 * random id are what a forger would have to guess. Silence, and an answer by which a server says
 * that it cannot, lead to the next server; an answer that is too large for a datagram is fetched by
 * TCP. When all have been asked twice, the best of what came is the answer: NULL, if nothing did.
 */
#pragma once

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/dns.h"

struct upstream; /* the servers of a resolv.conf, which is read again when it changes */

struct upstream *upstream_new(struct event_base *base, const char *resolv_conf);
void             upstream_free(struct upstream *u); /* after its queries */

struct upstream_query;

/* `answer` has the id of the query that was given, or is NULL. At most DNS_ANSWER_MAX bytes, which
 * may be changed. Called once, from the top of the loop; the query is gone then. */
typedef void upstream_answered(void *owner, uint8_t *answer, size_t size);

/* `query` is a header and one question, nothing else. */
struct upstream_query *upstream_ask(struct upstream *u, const uint8_t *query, size_t size,
                                    upstream_answered *answered, void *owner);
void                   upstream_cancel(struct upstream_query *q);
