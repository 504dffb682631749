/* refused - what was refused or failed in a sandbox's network: [{host, port, rule, allow}].
 *
 * The same row is kept once. Beyond a hundred rows only their number is kept, and told in a last
 * row whose host is "and N more". */
#pragma once

#include "base/json.h"
#include "egress/gates.h"
#include "egress/ip.h"
#include "egress/policy.h"
#include "egress/watch.h"

struct refused {
    json_t                    *list;
    int64_t                    more;  /* refusals that the list has no room for */
    const struct egress_watch *watch; /* borrowed */
};

void refused_init(struct refused *r, const struct egress_watch *watch);
void refused_done(struct refused *r);

/* `port` 0: none is known. */
void refused_note(struct refused *r, const char *host, uint16_t port, const char *rule,
                  const char *allow);
/* `by`: the one of the gates that objected. */
void refused_note_policy(struct refused *r, const struct gates *g, const struct policy *by,
                         const char *host, uint16_t port);
/* What allows it where no name server answers. */
extern const char refused_servers_failed[];
/* An address that no rule would let in; `what` it is, as ip_special says. */
void refused_note_special(struct refused *r, const char *host, uint16_t port,
                          const struct ip *address, const char *what);

json_t *refused_take(struct refused *r); /* since the last time; the caller releases */
