/* ip - addresses, and which of them belong to the internet at large.
 *
 * IPv4 is kept in its mapped form (::ffff:a.b.c.d), so that there is one kind of address. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { IP_TEXT = 46 }; /* of the longest, with its NUL */

struct ip {
    uint8_t bytes[16];
};

bool      ip_is_v4(const struct ip *a);
struct ip ip_from_v4(const uint8_t bytes[4]);

int  ip_parse(const char *text, struct ip *ret); /* one spelling a family: no octal, no shortened */
void ip_format(const struct ip *a, char ret[IP_TEXT]);
bool ip_is_inside(const struct ip *a, const struct ip *net, unsigned bits);

/* Fills an address for connect; its size. */
socklen_t ip_to_sockaddr(const struct ip *a, uint16_t port, struct sockaddr_storage *ret);

/* NULL: anybody's. Else what it is: "private", "loopback", "metadata", … Forms that carry an IPv4
 * address (mapped, NAT64, 6to4) are what that address is. */
const char *ip_special(const struct ip *a);
