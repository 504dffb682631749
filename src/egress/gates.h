/* gates - the two policies that a connection or a lookup must pass: the operator's, and the
 * sandbox's own, which can therefore never be wider. Then what a name resolves to: only public
 * addresses, but for the operator's registries. */
#pragma once

#include "egress/dns.h"
#include "egress/policy.h"

struct gates {
    const struct policy *operator_policy;
    const struct policy *policy; /* the sandbox's; NULL: it has none of its own */
};

/* The policy that says no, or NULL: to a lookup, and to a connection by its name or, when that is
 * not NULL, by its address. Nobody connects to port 0. */
const struct policy *gates_object_to_lookup(const struct gates *g, const char *name);
const struct policy *gates_object(const struct gates *g, const char *name, const struct ip *address,
                                  uint16_t port);

/* What the address is that no policy lets `host` have at this port, or NULL. */
const char *gates_special(const struct gates *g, const char *host, uint16_t port,
                          const struct ip *address);

/* Keeps the addresses that may be connected to. The first that may not is *ret_bad, and what it is
 * *ret_what; NULL: there is none. */
void gates_keep_public(const struct gates *g, const char *host, uint16_t port,
                       struct dns_addresses *list, struct ip *ret_bad, const char **ret_what);
