/* redirect - what code in the sandbox connects to reaches init instead.
 *
 * To be called in the sandbox's network namespace, with lo up and CAP_NET_ADMIN over it. Afterwards
 * every address is local, and by rules of nf_tables, in this order:
 *
 * - a UDP datagram to port 53, of any address, goes to PORT_LOOKUPS of init, a TCP connection to
 *   PORT_CONNECTIONS: without a resolv.conf it is 127.0.0.1 that is asked
 * - a TCP connection to one of `places`, which are on the host's loopback, goes to PORT_CONNECTIONS
 *   of init; so the sandbox's own loopback lacks these places
 * - a TCP connection to anything but loopback goes there too
 * - whatever else is not for loopback fails at once
 *
 * IPv6 has the same, where the kernel has IPv6. These are no wall: the wall is that lo is the
 * namespace's only interface. They are the only way to init's ear. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { REDIRECT_PLACES_MAX = 16 };

struct redirect_place {
    int      family; /* AF_INET or AF_INET6 */
    uint8_t  address[16];
    uint16_t port;
};

int redirect_to_init(const struct redirect_place *places, size_t n, struct err *e);
