#include "egress/gates.h"

const struct policy *gates_object_to_lookup(const struct gates *g, const char *name)
{
    const struct policy *both[] = {g->operator_policy, g->policy};

    for (size_t i = 0; i < 2; i++)
        if (both[i] && !policy_allows_name(both[i], name))
            return both[i];
    return NULL;
}

const struct policy *gates_object(const struct gates *g, const char *name, const struct ip *address,
                                  uint16_t port)
{
    const struct policy *both[] = {g->operator_policy, g->policy};

    for (size_t i = 0; i < 2; i++)
        if (both[i] && !(address ? policy_allows_address_at(both[i], address, port)
                                 : policy_allows_name_at(both[i], name, port)))
            return both[i];
    return NULL;
}

const char *gates_special(const struct gates *g, const char *host, uint16_t port,
                          const struct ip *address)
{
    return policy_exempts(g->operator_policy, host, port) ? NULL : ip_special(address);
}

void gates_keep_public(const struct gates *g, const char *host, uint16_t port,
                       struct dns_addresses *list, struct ip *ret_bad, const char **ret_what)
{
    size_t kept = 0;

    *ret_what = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const char *what = gates_special(g, host, port, &list->list[i]);
        if (!what) {
            list->list[kept++] = list->list[i];
        } else if (!*ret_what) {
            *ret_what = what;
            *ret_bad = list->list[i];
        }
    }
    list->n = kept;
}
