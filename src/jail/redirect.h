/* redirect - what code in the sandbox connects to reaches init instead.
 *
 * To be called in the sandbox's network namespace, with lo up and CAP_NET_ADMIN over it. Afterwards
 * every address is local, and by rules of nf_tables, in this order:
 *
 * - a UDP datagram to port 53, of any address, goes to PORT_LOOKUPS of init
 * - a TCP connection to anything but loopback goes to PORT_CONNECTIONS of init
 * - whatever else is not for loopback fails at once
 *
 * IPv6 has the same, where the kernel has IPv6. These are no wall: the wall is that lo is the
 * namespace's only interface. They are the only way to init's ear. */
#pragma once

#include "base/err.h"

int redirect_to_init(struct err *e);
