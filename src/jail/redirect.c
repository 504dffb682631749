/* Theory of operation. Raw netlink, because the libraries for it cost more than all other steps
 * together. Two requests: one to rtnetlink (routes), one to nfnetlink (a batch: all of the rules or
 * none). The kernel answers a request before sendto returns, with one acknowledgement for each
 * message, so nothing here ever waits.
 *
 * The routes make every address local: `local default dev lo`. The IPv4 one has a preferred source,
 * 127.0.0.1; without it a client's own address would be the one it connects to, and what the kernel
 * sends back there (a reset, say) would be met by our own rules. IPv6 picks ::1 by itself.
 *
 * The rules stand in a nat chain, the rejecting one too: such a chain sees only the first packet of
 * a flow, so no rule can hit an answer. */
#include "jail/redirect.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "pipe/ports.h"

enum {
    LOOPBACK_INDEX = 1, /* in every network namespace */
    NAT_PRIORITY = -100,
    PORT_DNS = 53,
    REQUEST_MAX = 16384,
};

static const char table[] = "jerboa", chain[] = "output";

/* What differs between the families. The loopback is told by the first bytes of the destination. */
static const struct family {
    uint8_t  inet, netfilter;
    uint8_t  loopback[16];
    uint32_t loopback_size, address_size, destination_offset;
    uint8_t  route_scope;
    bool     prefers_loopback; /* as the source of what is routed */
    uint8_t  unreachable_code;
} families[] = {
    {AF_INET, NFPROTO_IPV4, {127}, 1, 4, 16, RT_SCOPE_HOST, true, ICMP_PORT_UNREACH},
    {AF_INET6, NFPROTO_IPV6, {[15] = 1}, 16, 16, 24, RT_SCOPE_UNIVERSE, false, ICMPV6_PORT_UNREACH},
};

/* ---- messages ---- */

struct request {
    uint8_t  bytes[REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
    size_t   size;
    unsigned n_messages;
    unsigned n_awaited; /* acknowledgements */
};

static void add_padded(struct request *r, const void *data, size_t size)
{
    assert(size <= REQUEST_MAX - NLMSG_ALIGNTO - r->size); /* all places there may be have room */
    if (size > 0)
        memcpy(r->bytes + r->size, data, size);
    r->size += NLMSG_ALIGN(size); /* the padding is zero already */
}

/* Messages and nests are opened with their place, whose length is written when they are closed. */
static size_t open_message(struct request *r, int type, int flags, const void *head, size_t size)
{
    struct nlmsghdr h = {.nlmsg_type = (uint16_t)type,
                         .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
                         .nlmsg_seq = ++r->n_messages};
    size_t          at = r->size;

    if (flags & NLM_F_ACK)
        r->n_awaited++;
    add_padded(r, &h, sizeof h);
    add_padded(r, head, size);
    return at;
}

static void close_message(struct request *r, size_t at)
{
    uint32_t size = (uint32_t)(r->size - at);

    memcpy(r->bytes + at + offsetof(struct nlmsghdr, nlmsg_len), &size, sizeof size);
}

static void add_attribute(struct request *r, int type, const void *data, size_t size)
{
    struct nlattr a = {(uint16_t)(sizeof a + size), (uint16_t)type};

    add_padded(r, &a, sizeof a);
    add_padded(r, data, size);
}

static void add_text(struct request *r, int type, const char *text)
{
    add_attribute(r, type, text, strlen(text) + 1);
}

static void add_number(struct request *r, int type, uint32_t v) /* nf_tables has them big-endian */
{
    v = htonl(v);
    add_attribute(r, type, &v, sizeof v);
}

static size_t open_nest(struct request *r, int type)
{
    size_t at = r->size;

    add_attribute(r, type | NLA_F_NESTED, NULL, 0);
    return at;
}

static void close_nest(struct request *r, size_t at)
{
    uint16_t size = (uint16_t)(r->size - at);

    memcpy(r->bytes + at + offsetof(struct nlattr, nla_len), &size, sizeof size);
}

/* ---- sending ---- */

/* One datagram may hold several answers. -1: the kernel refused, and errno says why. */
static int read_answers(const uint8_t *bytes, size_t size, unsigned *n_awaited)
{
    const struct nlmsghdr *h = (const struct nlmsghdr *)bytes;

    for (; NLMSG_OK(h, size); h = NLMSG_NEXT(h, size)) {
        const struct nlmsgerr *answer = NLMSG_DATA(h);
        if (h->nlmsg_type != NLMSG_ERROR)
            continue;
        if (answer->error) {
            errno = -answer->error;
            return -1;
        }
        (*n_awaited)--;
    }
    return 0;
}

/* -1 with errno. */
static int send_request(struct request *r, int protocol)
{
    autofd int         fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    uint8_t            answers[REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));

    if (fd < 0 || sendto(fd, r->bytes, r->size, 0, (struct sockaddr *)&kernel, sizeof kernel) <
                      (ssize_t)r->size)
        return -1;
    while (r->n_awaited > 0) {
        ssize_t n = recv(fd, answers, sizeof answers, MSG_DONTWAIT);
        if (n < 0)
            return -1;
        TRY(read_answers(answers, (size_t)n, &r->n_awaited));
    }
    return 0;
}

/* ---- routes ---- */

static void add_route(struct request *r, const struct family *f)
{
    struct rtmsg m = {.rtm_family = f->inet,
                      .rtm_table = RT_TABLE_LOCAL,
                      .rtm_protocol = RTPROT_BOOT,
                      .rtm_scope = f->route_scope,
                      .rtm_type = RTN_LOCAL};
    int          lo = LOOPBACK_INDEX;
    uint32_t     source = htonl(INADDR_LOOPBACK);
    size_t at = open_message(r, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &m, sizeof m);

    add_attribute(r, RTA_OIF, &lo, sizeof lo);
    if (f->prefers_loopback)
        add_attribute(r, RTA_PREFSRC, &source, sizeof source);
    close_message(r, at);
}

/* ---- rules ---- */

static size_t open_nft(struct request *r, int type, int flags, uint8_t family)
{
    struct nfgenmsg m = {.nfgen_family = family, .version = NFNETLINK_V0};

    return open_message(r, NFNL_SUBSYS_NFTABLES << 8 | type, flags | NLM_F_ACK, &m, sizeof m);
}

static void add_batch_mark(struct request *r, int type)
{
    struct nfgenmsg m = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

    close_message(r, open_message(r, type, 0, &m, sizeof m));
}

static void add_chain(struct request *r, const struct family *f)
{
    size_t message, hook;

    message = open_nft(r, NFT_MSG_NEWTABLE, NLM_F_CREATE, f->netfilter);
    add_text(r, NFTA_TABLE_NAME, table);
    close_message(r, message);

    message = open_nft(r, NFT_MSG_NEWCHAIN, NLM_F_CREATE, f->netfilter);
    add_text(r, NFTA_CHAIN_TABLE, table);
    add_text(r, NFTA_CHAIN_NAME, chain);
    hook = open_nest(r, NFTA_CHAIN_HOOK);
    add_number(r, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    add_number(r, NFTA_HOOK_PRIORITY, (uint32_t)NAT_PRIORITY);
    close_nest(r, hook);
    add_text(r, NFTA_CHAIN_TYPE, "nat");
    close_message(r, message);
}

/* A rule is a list of expressions, each of which loads, compares or acts. */
struct rule {
    size_t message, expressions;
};

static struct rule open_rule(struct request *r, const struct family *f)
{
    struct rule rule = {
        .message = open_nft(r, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, f->netfilter)};

    add_text(r, NFTA_RULE_TABLE, table);
    add_text(r, NFTA_RULE_CHAIN, chain);
    rule.expressions = open_nest(r, NFTA_RULE_EXPRESSIONS);
    return rule;
}

static void close_rule(struct request *r, struct rule rule)
{
    close_nest(r, rule.expressions);
    close_message(r, rule.message);
}

struct expression {
    size_t element, data;
};

static struct expression open_expression(struct request *r, const char *name)
{
    struct expression x = {.element = open_nest(r, NFTA_LIST_ELEM)};

    add_text(r, NFTA_EXPR_NAME, name);
    x.data = open_nest(r, NFTA_EXPR_DATA);
    return x;
}

static void close_expression(struct request *r, struct expression x)
{
    close_nest(r, x.data);
    close_nest(r, x.element);
}

static void add_value(struct request *r, int type, const void *value, size_t size)
{
    size_t nest = open_nest(r, type);

    add_attribute(r, NFTA_DATA_VALUE, value, size);
    close_nest(r, nest);
}

static void add_compare(struct request *r, enum nft_cmp_ops op, const void *value, size_t size)
{
    struct expression x = open_expression(r, "cmp");

    add_number(r, NFTA_CMP_SREG, NFT_REG_1);
    add_number(r, NFTA_CMP_OP, op);
    add_value(r, NFTA_CMP_DATA, value, size);
    close_expression(r, x);
}

static void add_load(struct request *r, enum nft_payload_bases base, uint32_t offset, uint32_t size)
{
    struct expression x = open_expression(r, "payload");

    add_number(r, NFTA_PAYLOAD_DREG, NFT_REG_1);
    add_number(r, NFTA_PAYLOAD_BASE, base);
    add_number(r, NFTA_PAYLOAD_OFFSET, offset);
    add_number(r, NFTA_PAYLOAD_LEN, size);
    close_expression(r, x);
}

static void if_protocol(struct request *r, uint8_t protocol)
{
    struct expression x = open_expression(r, "meta");

    add_number(r, NFTA_META_DREG, NFT_REG_1);
    add_number(r, NFTA_META_KEY, NFT_META_L4PROTO);
    close_expression(r, x);
    add_compare(r, NFT_CMP_EQ, &protocol, sizeof protocol);
}

static void if_port(struct request *r, uint16_t port)
{
    enum { DESTINATION_OFFSET = 2 };

    port = htons(port);
    add_load(r, NFT_PAYLOAD_TRANSPORT_HEADER, DESTINATION_OFFSET, sizeof port);
    add_compare(r, NFT_CMP_EQ, &port, sizeof port);
}

static void if_not_loopback(struct request *r, const struct family *f)
{
    add_load(r, NFT_PAYLOAD_NETWORK_HEADER, f->destination_offset, f->loopback_size);
    add_compare(r, NFT_CMP_NEQ, f->loopback, f->loopback_size);
}

static void if_address(struct request *r, const struct family *f, const uint8_t *address)
{
    add_load(r, NFT_PAYLOAD_NETWORK_HEADER, f->destination_offset, f->address_size);
    add_compare(r, NFT_CMP_EQ, address, f->address_size);
}

static void then_redirect(struct request *r, uint16_t port)
{
    struct expression x = open_expression(r, "immediate");

    port = htons(port);
    add_number(r, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    add_value(r, NFTA_IMMEDIATE_DATA, &port, sizeof port);
    close_expression(r, x);
    x = open_expression(r, "redir");
    add_number(r, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
    close_expression(r, x);
}

static void then_reject(struct request *r, const struct family *f)
{
    struct expression x = open_expression(r, "reject");

    add_number(r, NFTA_REJECT_TYPE, NFT_REJECT_ICMP_UNREACH);
    add_attribute(r, NFTA_REJECT_ICMP_CODE, &f->unreachable_code, 1);
    close_expression(r, x);
}

static void add_place(struct request *r, const struct family *f, const struct redirect_place *p)
{
    struct rule rule = open_rule(r, f);

    if_protocol(r, IPPROTO_TCP);
    if_address(r, f, p->address);
    if_port(r, p->port);
    then_redirect(r, PORT_CONNECTIONS);
    close_rule(r, rule);
}

static void add_rules(struct request *r, const struct family *f,
                      const struct redirect_place *places, size_t n)
{
    struct rule rule;

    add_chain(r, f);

    rule = open_rule(r, f);
    if_protocol(r, IPPROTO_UDP);
    if_port(r, PORT_DNS);
    then_redirect(r, PORT_LOOKUPS);
    close_rule(r, rule);

    rule = open_rule(r, f);
    if_protocol(r, IPPROTO_TCP);
    if_port(r, PORT_DNS);
    then_redirect(r, PORT_CONNECTIONS);
    close_rule(r, rule);

    for (size_t i = 0; i < n; i++)
        if (places[i].family == f->inet)
            add_place(r, f, &places[i]);

    rule = open_rule(r, f);
    if_protocol(r, IPPROTO_TCP);
    if_not_loopback(r, f);
    then_redirect(r, PORT_CONNECTIONS);
    close_rule(r, rule);

    rule = open_rule(r, f);
    if_not_loopback(r, f);
    then_reject(r, f);
    close_rule(r, rule);
}

/* ---- the whole ---- */

static bool kernel_has(const struct family *f)
{
    autofd int fd = socket(f->inet, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return fd >= 0 || errno != EAFNOSUPPORT;
}

static int set_route(const struct family *f, struct err *e)
{
    struct request r = {0};
    int            sent;

    add_route(&r, f);
    sent = send_request(&r, NETLINK_ROUTE);
    if (sent < 0 && f->inet == AF_INET6 && errno == EACCES)
        return 0; /* IPv6 is switched off by sysctl: then it stays unreachable */
    return sent < 0 ? err_sys(e, "route every address to lo") : 0;
}

static int explain(struct err *e)
{
    switch (errno) {
    case ENOENT: /* an expression, a kind of chain */
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
        return err_set(
            e, ERR_UNAVAILABLE,
            "this kernel lacks nf_tables or a part of it: load the modules nf_tables, "
            "nft_chain_nat, nft_redir and nft_reject (modprobe), or run with --network host");
    default:
        return err_sys(e, "set the rules of nf_tables");
    }
}

int redirect_to_init(const struct redirect_place *places, size_t n, struct err *e)
{
    struct request r = {0};

    add_batch_mark(&r, NFNL_MSG_BATCH_BEGIN);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (kernel_has(&families[i])) {
            TRY(set_route(&families[i], e));
            add_rules(&r, &families[i], places, n);
        }
    add_batch_mark(&r, NFNL_MSG_BATCH_END);
    return send_request(&r, NETLINK_NETFILTER) < 0 ? explain(e) : 0;
}
