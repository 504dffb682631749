/* lookups - what code in a sandbox asks the domain name system, answered.
 *
 * A query passes the policies and gets, for addresses, a made-up one; other types are asked of the
 * machine's name servers. A name that is refused, or that has only addresses which would be
 * refused, does not exist inside, so that programs fail at once instead of trying again. */
#pragma once

#include "egress/egress_private.h"

/* The answer to the query of that number, good until it returns; size 0: none is due. */
typedef void lookups_tell(void *owner, uint32_t id, const uint8_t *answer, size_t size);

struct lookups_query {
    const uint8_t *message; /* at most DNS_MESSAGE_MAX; copied */
    size_t         size;
    size_t         most; /* bytes of the answer; 0: what the query itself says */
    uint32_t       id;
    lookups_tell  *tell; /* once, perhaps before lookups_ask returns */
    void          *owner;
};

void lookups_ask(struct egress *e, const struct lookups_query *query);
void lookups_cancel(struct egress *e, const void *owner); /* all of that owner's: nothing is told */
void lookups_cancel_all(struct egress *e);
