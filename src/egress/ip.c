#include "egress/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool ip_is_v4(const struct ip *a)
{
    return memcmp(a->bytes, mapped, sizeof mapped) == 0;
}

struct ip ip_from_v4(const uint8_t bytes[4])
{
    struct ip a;

    memcpy(a.bytes, mapped, sizeof mapped);
    memcpy(a.bytes + 12, bytes, 4);
    return a;
}

int ip_parse(const char *text, struct ip *ret)
{
    uint8_t four[4];

    if (inet_pton(AF_INET, text, four) == 1)
        *ret = ip_from_v4(four);
    else if (inet_pton(AF_INET6, text, ret->bytes) != 1)
        return -1;
    return 0;
}

void ip_format(const struct ip *a, char ret[IP_TEXT])
{
    if (ip_is_v4(a))
        inet_ntop(AF_INET, a->bytes + 12, ret, IP_TEXT);
    else
        inet_ntop(AF_INET6, a->bytes, ret, IP_TEXT);
}

bool ip_is_inside(const struct ip *a, const struct ip *net, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    if (memcmp(a->bytes, net->bytes, whole) != 0)
        return false;
    return rest == 0 || (a->bytes[whole] ^ net->bytes[whole]) >> (8 - rest) == 0;
}

socklen_t ip_to_sockaddr(const struct ip *a, uint16_t port, struct sockaddr_storage *ret)
{
    struct sockaddr_in  *four = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret;

    memset(ret, 0, sizeof *ret);
    if (ip_is_v4(a)) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        memcpy(&four->sin_addr, a->bytes + 12, 4);
        return sizeof *four;
    }
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    memcpy(&six->sin6_addr, a->bytes, 16);
    return sizeof *six;
}

/* ---- what is not the internet: the registries of special-purpose addresses, and what clouds
 * answer their own machines on ---- */

struct range {
    const char *net;
    unsigned    bits;
    const char *what;
};

static const struct range four_ranges[] = {
    {"0.0.0.0", 8, "reserved"},        {"10.0.0.0", 8, "private"},
    {"100.64.0.0", 10, "private"},     {"127.0.0.0", 8, "loopback"},
    {"169.254.0.0", 16, "link-local"}, {"172.16.0.0", 12, "private"},
    {"192.0.0.0", 24, "reserved"},     {"192.0.2.0", 24, "reserved"},
    {"192.88.99.0", 24, "reserved"},   {"192.168.0.0", 16, "private"},
    {"198.18.0.0", 15, "reserved"},    {"198.51.100.0", 24, "reserved"},
    {"203.0.113.0", 24, "reserved"},   {"224.0.0.0", 4, "multicast"},
    {"240.0.0.0", 4, "reserved"},      {"168.63.129.16", 32, "metadata"},
};

/* Before these, the forms that carry an IPv4 address are looked at; after them, all that lies
 * outside of 2000::/3 is nobody's. */
static const struct range six_ranges[] = {
    {"::1", 128, "loopback"},       {"fc00::", 7, "private"},   {"fe80::", 10, "link-local"},
    {"fec0::", 10, "private"},      {"ff00::", 8, "multicast"}, {"2001::", 23, "reserved"},
    {"2001:db8::", 32, "reserved"}, {"3fff::", 20, "reserved"},
};

/* Where an IPv4 address may hide. */
static const struct {
    const char *net;
    unsigned    bits, at;
} carriers[] = {
    {"64:ff9b::", 96, 12}, /* NAT64 */
    {"2002::", 16, 2},     /* 6to4 */
};

static bool is_in(const struct ip *a, const char *net, unsigned bits)
{
    struct ip n;

    return ip_parse(net, &n) == 0 && ip_is_inside(a, &n, ip_is_v4(&n) ? bits + 96 : bits);
}

const char *ip_special(const struct ip *a)
{
    if (ip_is_v4(a)) {
        for (size_t i = 0; i < sizeof four_ranges / sizeof *four_ranges; i++)
            if (is_in(a, four_ranges[i].net, four_ranges[i].bits))
                return four_ranges[i].what;
        return NULL;
    }
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        if (is_in(a, carriers[i].net, carriers[i].bits)) {
            struct ip inner = ip_from_v4(a->bytes + carriers[i].at);
            return ip_special(&inner);
        }
    for (size_t i = 0; i < sizeof six_ranges / sizeof *six_ranges; i++)
        if (is_in(a, six_ranges[i].net, six_ranges[i].bits))
            return six_ranges[i].what;
    return is_in(a, "2000::", 3) ? NULL : "reserved";
}
