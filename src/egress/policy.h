/* policy - what a sandbox may connect to.
 *
 *   none      nothing
 *   npm       the configured registries, and what its rules name
 *   allow     what its rules name; none with rules is this too
 *   internet  every public address
 *   host      not decided here: the sandbox shares the machine's network
 *
 * Whatever the policy, an address that is not public is refused; only the registries are exempt,
 * each at its own host and port. A rule is HOST, *.DOMAIN, ADDRESS or NET/BITS, then perhaps :PORT
 * or :PORT-PORT; IPv6 stands in brackets. Rules of addresses meet addresses that code connects to,
 * rules of names meet names: a name is never allowed by what it resolves to. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "egress/ip.h"

enum policy_kind { POLICY_NONE, POLICY_NPM, POLICY_ALLOW, POLICY_INTERNET, POLICY_HOST };

enum { POLICY_NAME_MAX = 253, POLICY_REGISTRIES_MAX = 64 };

struct policy;

/* Lists end with NULL. `registries` are URLs. NULL on error: one sentence that names the rule. */
struct policy *policy_new(const char *kind, const char *const *rules, const char *const *registries,
                          struct err *e);
void           policy_free(struct policy *p);

enum policy_kind policy_kind(const struct policy *p);
const char      *policy_name(const struct policy *p);

/* Whether a sandbox may be given `wanted` where the operator's policy is the other one. `host` is
 * not decided connection by connection, so it must be the operator's too; everything else is met
 * together with it (egress/gates.h) and never gets wider. */
int policy_check_within(const struct policy *wanted, const struct policy *operator_policy,
                        struct err *e);

/* Lower case, no dot at the end. */
bool policy_allows_name(const struct policy *p, const char *name); /* on some port */
bool policy_allows_name_at(const struct policy *p, const char *name, uint16_t port);
bool policy_allows_address_at(const struct policy *p, const struct ip *address, uint16_t port);

/* The registries': host (a name or an address as ip_format writes it) and port; 0: any port. */
bool policy_exempts(const struct policy *p, const char *host, uint16_t port);
