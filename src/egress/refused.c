#include "egress/refused.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

enum { ROWS_MAX = 100 };

const char refused_servers_failed[] = "nothing to allow: the name servers of this machine failed";

void refused_init(struct refused *r, const struct egress_watch *watch)
{
    *r = (struct refused){.list = json_array(), .watch = watch};
}

static void tell_more(const struct refused *r)
{
    if (r->more > 0 && r->watch->more_refused)
        r->watch->more_refused(r->watch->owner, r->more);
}

void refused_done(struct refused *r)
{
    tell_more(r);
    json_decref(r->list);
}

static json_t *make_row(const char *host, uint16_t port, const char *rule, const char *allow)
{
    return json_pack("{s:s, s:o, s:s, s:s}", "host", host, "port",
                     port ? json_integer(port) : json_null(), "rule", rule, "allow", allow);
}

static bool is_known(const json_t *list, const json_t *row)
{
    size_t  i;
    json_t *known;

    json_array_foreach ((json_t *)list, i, known)
        if (json_equal(known, (json_t *)row))
            return true;
    return false;
}

void refused_note(struct refused *r, const char *host, uint16_t port, const char *rule,
                  const char *allow)
{
    autojson json_t *row = make_row(host, port, rule, allow);

    if (is_known(r->list, row))
        return;
    if (json_array_size(r->list) == ROWS_MAX) {
        r->more++;
        return;
    }
    json_array_append(r->list, row);
    if (r->watch->refused)
        r->watch->refused(r->watch->owner, host, port, rule);
}

void refused_note_policy(struct refused *r, const struct gates *g, const struct policy *by,
                         const char *host, uint16_t port)
{
    autofree char *rule = str_format("network policy '%s'", policy_name(by));
    autofree char *at =
        port ? str_format(strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port) : str_dup(host);
    autofree char *allow = str_format("--allow %s, or --network internet", at);

    /* The operator's is asked first: where the sandbox's own objects, no option would help. */
    refused_note(r, host, port, rule,
                 by == g->operator_policy ? allow : "a sandbox without this policy of its own");
}

void refused_note_special(struct refused *r, const char *host, uint16_t port,
                          const struct ip *address, const char *what)
{
    char text[IP_TEXT];

    ip_format(address, text);
    autofree char *rule = str_format("%s address %s", what, text);
    refused_note(r, host, port, rule,
                 "--network host, which gives it all that this machine can reach");
}

json_t *refused_take(struct refused *r)
{
    json_t        *taken = r->list;
    autofree char *rest = str_format("and %lld more", (long long)r->more);

    if (r->more > 0)
        json_array_append_new(
            taken, make_row(rest, 0, "not listed one by one", "the first hundred are listed"));
    tell_more(r);
    refused_init(r, r->watch);
    return taken;
}
