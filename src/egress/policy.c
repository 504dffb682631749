#include "egress/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/url.h"

enum { RULES_MAX = 1024 };

static const char *const names[] = {[POLICY_NONE] = "none",
                                    [POLICY_NPM] = "npm",
                                    [POLICY_ALLOW] = "allow",
                                    [POLICY_INTERNET] = "internet",
                                    [POLICY_HOST] = "host"};

struct rule {
    char      name[POLICY_NAME_MAX + 1]; /* "": it is a net */
    bool      below;                     /* what is below the name, not the name itself */
    struct ip net;
    unsigned  bits;
    uint16_t  from, to; /* ports */
};

struct policy {
    enum policy_kind kind;
    struct rule     *rules, *registries;
    size_t           n_rules, n_registries;
};

/* ---- rules ---- */

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t            length = strlen(text);

    return length > 0 && length <= POLICY_NAME_MAX && strspn(text, letters) == length &&
           text[0] != '.' && text[length - 1] != '.' && !strstr(text, "..");
}

/* "443", "8000-8999" or nothing. */
static int parse_ports(char *text, struct rule *ret)
{
    char   *dash = text ? strchr(text, '-') : NULL;
    int64_t from, to;

    ret->from = 1, ret->to = UINT16_MAX;
    if (!text)
        return 0;
    if (dash)
        *dash++ = '\0';
    TRY(str_parse_count(text, 1, UINT16_MAX, &from, NULL));
    TRY(str_parse_count(dash ? dash : text, from, UINT16_MAX, &to, NULL));
    ret->from = (uint16_t)from, ret->to = (uint16_t)to;
    return 0;
}

static int parse_net(char *host, const char *bits, struct rule *ret)
{
    int64_t n, whole;

    TRY(ip_parse(host, &ret->net));
    n = whole = ip_is_v4(&ret->net) ? 32 : 128;
    if (bits)
        TRY(str_parse_count(bits, 0, whole, &n, NULL));
    ret->bits = (unsigned)(n + 128 - whole);
    return 0;
}

/* Cuts "HOST[/BITS][:PORTS]" into its parts; those that are not there are NULL. */
static int split(char *text, char **ret_host, char **ret_bits, char **ret_ports)
{
    char *rest;

    *ret_host = text;
    if (*text == '[') {
        rest = strchr(text, ']');
        if (!rest)
            return -1;
        (*ret_host)++;
        *rest++ = '\0';
        if (*rest && *rest != ':' && *rest != '/')
            return -1;
    } else {
        rest = text + strcspn(text, ":/");
    }
    *ret_bits = *rest == '/' ? rest + 1 : NULL;
    *ret_ports = strchr(rest, ':');
    if (*ret_ports)
        *(*ret_ports)++ = '\0';
    if (*ret_bits)
        *rest = '\0';
    return 0;
}

static int parse_rule(const char *text, struct rule *ret, struct err *e)
{
    autofree char *copy = str_dup(text);
    char          *host, *bits, *ports;
    bool           ok;

    for (char *c = copy; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c += 'a' - 'A';
    ok = split(copy, &host, &bits, &ports) == 0 && parse_ports(ports, ret) == 0;
    if (ok && parse_net(host, bits, ret) < 0) {
        ret->below = str_starts(host, "*.");
        host += ret->below ? 2 : 0;
        ok = !bits && *copy != '[' && is_name(host) &&
             strspn(host, "0123456789.") != strlen(host) && /* no half address */
             str_copy(ret->name, sizeof ret->name, host) == 0;
    }
    if (!ok)
        return err_set(
            e, ERR_INVALID,
            "'%.80s' is no rule: write HOST, *.DOMAIN, ADDRESS or NET/BITS, then perhaps "
            ":PORT or :PORT-PORT",
            text);
    return 0;
}

/* A URL, as a rule of its host and port. */
static int parse_registry(const char *text, struct rule *ret, struct err *e)
{
    struct url url;

    if (url_parse(text, &url, NULL) < 0 || parse_rule(url.host, ret, NULL) < 0)
        return err_set(e, ERR_INVALID, "a configured registry is no http or https URL");
    if (ret->from != ret->to) /* it named none */
        ret->from = ret->to = url.is_tls ? 443 : 80;
    return 0;
}

/* ---- the whole ---- */

static int parse_list(const char *const *texts, size_t                                       max,
                      int (*parse)(const char *, struct rule *, struct err *), struct rule **ret,
                      size_t *ret_n, struct err *e)
{
    size_t n = 0;

    while (texts && texts[n])
        n++;
    if (n > max)
        return err_set(e, ERR_LIMIT, "there are more than %zu rules", max);
    *ret = calloc(n + 1, sizeof **ret);
    if (!*ret)
        abort();
    for (; *ret_n < n; ++*ret_n)
        TRY(parse(texts[*ret_n], &(*ret)[*ret_n], e));
    return 0;
}

static int parse_kind(const char *text, enum policy_kind *ret, struct err *e)
{
    for (int i = POLICY_NONE; i <= POLICY_HOST; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum policy_kind)i;
            return 0;
        }
    return err_set(e, ERR_INVALID,
                   "the network policy '%.60s' is none of none, npm, allow, internet, host", text);
}

struct policy *policy_new(const char *kind, const char *const *rules, const char *const *registries,
                          struct err *e)
{
    struct policy *p = calloc(1, sizeof *p);

    if (!p)
        abort();
    if (parse_kind(kind, &p->kind, e) == 0 &&
        parse_list(rules, RULES_MAX, parse_rule, &p->rules, &p->n_rules, e) == 0 &&
        parse_list(registries, POLICY_REGISTRIES_MAX, parse_registry, &p->registries,
                   &p->n_registries, e) == 0) {
        if (p->kind == POLICY_NONE && p->n_rules > 0)
            p->kind = POLICY_ALLOW;
        if (p->kind < POLICY_INTERNET || p->n_rules == 0)
            return p;
        err_set(e, ERR_INVALID, "the network policy '%s' allows more than any rule: leave one out",
                kind);
    }
    policy_free(p);
    return NULL;
}

void policy_free(struct policy *p)
{
    if (!p)
        return;
    free(p->rules);
    free(p->registries);
    free(p);
}

enum policy_kind policy_kind(const struct policy *p)
{
    return p->kind;
}

const char *policy_name(const struct policy *p)
{
    return names[p->kind];
}

int policy_check_within(const struct policy *wanted, const struct policy *operator_policy,
                        struct err *e)
{
    if (wanted->kind == POLICY_HOST && operator_policy->kind != POLICY_HOST)
        return err_set(e, ERR_INVALID,
                       "the network policy 'host' is not for a sandbox to choose: the operator's "
                       "is '%s'",
                       policy_name(operator_policy));
    return 0;
}

/* ---- questions ---- */

static bool has_name(const struct rule *r, const char *name)
{
    size_t length = strlen(name), own = strlen(r->name);

    if (own == 0)
        return false;
    if (!r->below)
        return strcmp(name, r->name) == 0;
    return length > own + 1 && name[length - own - 1] == '.' &&
           strcmp(name + length - own, r->name) == 0;
}

static bool has_address(const struct rule *r, const struct ip *address)
{
    return !r->name[0] && ip_is_v4(address) == ip_is_v4(&r->net) &&
           ip_is_inside(address, &r->net, r->bits);
}

static bool has_port(const struct rule *r, uint16_t port)
{
    return port == 0 || (port >= r->from && port <= r->to); /* 0: whichever */
}

/* By name, or by address when that is not NULL. */
static bool list_has(const struct rule *rules, size_t n, const char *name, const struct ip *address,
                     uint16_t port)
{
    for (size_t i = 0; i < n; i++)
        if (has_port(&rules[i], port) &&
            (address ? has_address(&rules[i], address) : has_name(&rules[i], name)))
            return true;
    return false;
}

static bool allows(const struct policy *p, const char *name, const struct ip *address,
                   uint16_t port)
{
    switch (p->kind) {
    case POLICY_INTERNET:
    case POLICY_HOST:
        return true;
    case POLICY_NPM:
        return list_has(p->registries, p->n_registries, name, address, port) ||
               list_has(p->rules, p->n_rules, name, address, port);
    case POLICY_ALLOW:
        return list_has(p->rules, p->n_rules, name, address, port);
    case POLICY_NONE:
        break;
    }
    return false;
}

bool policy_allows_name(const struct policy *p, const char *name)
{
    return allows(p, name, NULL, 0);
}

bool policy_allows_name_at(const struct policy *p, const char *name, uint16_t port)
{
    return port > 0 && allows(p, name, NULL, port);
}

bool policy_allows_address_at(const struct policy *p, const struct ip *address, uint16_t port)
{
    assert(address);
    return port > 0 && allows(p, NULL, address, port);
}

bool policy_exempts(const struct policy *p, const char *host, uint16_t port)
{
    struct ip address;
    bool      is_address = ip_parse(host, &address) == 0;

    return list_has(p->registries, p->n_registries, host, is_address ? &address : NULL, port);
}
