/* watch - who wants to know of each connection of a sandbox as it happens. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct egress_seen {
    uint32_t    number; /* of the connection, in its sandbox */
    const char *host, *address;
    uint16_t    port;
    uint64_t    sent_bytes, received_bytes; /* when it is over, and how long it was */
    int64_t     ms;
};

struct egress_watch { /* zeros: nobody watches */
    void *owner;
    bool (*may_connect)(void *owner); /* false: nothing can be told, so nothing is to be made */
    bool (*connected)(void *owner, const struct egress_seen *c); /* false: it was not told either */
    void (*over)(void *owner, const struct egress_seen *c);      /* of those that were connected */
    /* As refused.h keeps it: the first of the same kind. Port 0: none is known. */
    void (*refused)(void *owner, const char *host, uint16_t port, const char *rule);
    void (*more_refused)(void *owner, int64_t n); /* that the list had no room for */
};
