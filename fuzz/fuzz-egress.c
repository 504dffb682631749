/* fuzz-egress - the server's half of egress, fed with what a hostile init might send, and the
 * parsers of DNS messages, fed with anything.
 *
 * Egress, resolver and connections are real; the outside is played. `connect` is replaced: instead
 * of a way to the network the socket becomes one end of a socketpair, whose other end is an echo or
 * worse, or a name server, as the first byte of the input says (enum below). The rest are the
 * frames of init, or with PARSE a DNS message.
 *
 * Asserted: however init and name servers behave, nothing is ever connected to that is not public
 * but the registry; DATA keeps within the credit that init gave; after RESET or END nothing
 * follows; and nothing stays on the loop. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/egress.h"
#include "pipe/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);

enum {
    PARSE = 1,
    PRIVATE = 2,       /* names have a private address */
    REFUSES = 4,       /* nobody can be connected to */
    HANGS_UP = 8,      /* who is connected to ends at once */
    SILENT = 16,       /* who is connected to neither reads nor writes */
    NPM = 32,          /* the policy is npm, else internet */
    CHANGES_MIND = 64, /* from the middle on the sandbox's own policy is none */
    GARBLES = 128,     /* the name server's answers have a wrong byte */
};

enum { CHANNELS = 256, OUTSIDE = 512, REGISTRY_PORT = 4873, TXT = 16, LONG = 5000 };

static const uint8_t public_address[] = {93, 184, 216, 34}, private_address[] = {10, 1, 2, 3};
static const char    registry[] = "http://10.9.9.9:4873/";

struct channel {
    uint32_t id;
    uint32_t credit;
    bool     is_over, ended;
};

static struct play {
    struct event_base *base;
    struct egress     *egress;
    unsigned           flags;
    bool               violated;
    struct channel     channels[CHANNELS];
    size_t             n_channels;
    struct {
        int  fd;
        bool is_server; /* of names */
        bool by_stream;
    } outside[OUTSIDE];
    size_t n_outside;
} play;

/* ---- the outside ---- */

/* Its port. What code wants at port 53 is answered here and never carried out. */
static uint16_t check_address(const struct sockaddr *to)
{
    const struct sockaddr_in  *four = (const struct sockaddr_in *)to;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)to;
    struct ip                  address;
    char                       text[IP_TEXT];
    uint16_t                   port;

    if (to->sa_family == AF_INET) {
        address = ip_from_v4((const uint8_t *)&four->sin_addr);
        port = ntohs(four->sin_port);
    } else {
        memcpy(address.bytes, &six->sin6_addr, sizeof address.bytes);
        port = ntohs(six->sin6_port);
    }
    ip_format(&address, text);
    if (port == DNS_PORT) { /* the resolver's, who asks this machine when nobody is configured */
        assert(strcmp(text, "127.0.0.1") == 0);
        return port;
    }
    assert(!ip_special(&address) || (strcmp(text, "10.9.9.9") == 0 && port == REGISTRY_PORT));
    assert(port != 0);
    return port;
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    int       type, ends[2];
    socklen_t type_size = sizeof type;
    uint16_t  port = check_address(to);

    (void)size;
    assert(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0);
    if (play.n_outside == OUTSIDE || (type == SOCK_STREAM && play.flags & REFUSES)) {
        errno = ECONNREFUSED;
        return -1;
    }
    assert(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    assert(dup3(ends[0], fd, O_CLOEXEC) == fd);
    close(ends[0]);
    play.outside[play.n_outside].fd = ends[1];
    play.outside[play.n_outside].by_stream = type == SOCK_STREAM;
    play.outside[play.n_outside++].is_server = port == DNS_PORT;
    return 0;
}

/* A text that no datagram holds: truncated there, whole by TCP. */
static size_t answer_text(uint8_t *bytes, size_t size, bool by_stream)
{
    static const uint8_t record[] = {0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, LONG >> 8, LONG & 255};

    if (!by_stream) {
        bytes[2] |= 2;
        return size;
    }
    bytes[7] = 1;
    memcpy(bytes + size, record, sizeof record);
    memset(bytes + size + sizeof record, 'x', LONG);
    return size + sizeof record + LONG;
}

static void answer_query(int fd, const uint8_t *query, size_t size, bool by_stream)
{
    struct dns_query q;
    struct ip        address = ip_from_v4(play.flags & PRIVATE ? private_address : public_address);
    uint8_t          bytes[2 + DNS_MESSAGE_MAX + 2 * LONG], *message = bytes + 2;

    assert(dns_parse_query(query, size, &q) == 0); /* ours */
    size = dns_answer(query, &q, DNS_OK, q.type == DNS_A ? &address : NULL, message);
    if (q.type == TXT)
        size = answer_text(message, size, by_stream);
    if (play.flags & GARBLES)
        message[query[1] % size] ^= query[0];
    bytes[0] = (uint8_t)(size >> 8), bytes[1] = (uint8_t)size;
    if (by_stream)
        send(fd, bytes, size + 2, MSG_NOSIGNAL);
    else
        send(fd, message, size, MSG_NOSIGNAL);
}

static void serve_names(int fd, bool by_stream)
{
    uint8_t bytes[DNS_MESSAGE_MAX];
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
        answer_query(fd, by_stream ? bytes + 2 : bytes, (size_t)n - (by_stream ? 2 : 0), by_stream);
}

static void play_outside(void)
{
    uint8_t bytes[DNS_MESSAGE_MAX];

    for (size_t i = 0; i < play.n_outside; i++) {
        int     fd = play.outside[i].fd;
        ssize_t n;

        if (play.outside[i].is_server) {
            serve_names(fd, play.outside[i].by_stream);
        } else if (play.flags & HANGS_UP) {
            fd_close(&play.outside[i].fd);
        } else if (!(play.flags & SILENT)) {
            while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0)
                send(fd, bytes, (size_t)n, MSG_NOSIGNAL);
            if (n == 0)
                shutdown(fd, SHUT_WR);
        }
    }
}

/* ---- what init hears ---- */

static struct channel *find_channel(uint32_t id)
{
    for (size_t i = 0; i < play.n_channels; i++)
        if (play.channels[i].id == id)
            return &play.channels[i];
    return NULL;
}

static void on_send(void *owner, enum frame_type type, uint32_t id, uint8_t stream,
                    const void *payload, size_t size)
{
    struct channel    *c = find_channel(id);
    autobuf struct buf whole;
    struct frame       f = {type, stream, id, payload, size};

    (void)owner;
    buf_init(&whole, FRAME_HEADER + FRAME_MAX);
    assert(frame_add(&whole, &f) == 0);
    assert(frame_parse(whole.data, whole.size, PEER_SERVER, &f, NULL) == (long)whole.size);
    if (type == FRAME_FOUND)
        return;
    assert(c && !c->is_over);
    if (type == FRAME_DATA) {
        assert(!c->ended && size <= c->credit);
        c->credit -= (uint32_t)size;
    }
    assert(!(type == FRAME_END && c->ended));
    c->ended |= type == FRAME_END;
    c->is_over |= type == FRAME_RESET;
}

static void on_violated(void *owner, const char *sentence)
{
    (void)owner;
    assert(*sentence);
    play.violated = true;
}

static bool on_has_room(void *owner)
{
    (void)owner;
    return true;
}

static const struct egress_ops ops = {on_send, on_has_room, on_violated};

/* ---- what init says ---- */

/* Before egress sees it, which may answer at once. */
static void note_frame(const struct frame *f)
{
    struct channel *c = find_channel(f->channel);
    uint32_t        bytes;

    if (f->type == FRAME_CONNECT && !c)
        play.channels[play.n_channels++] =
            (struct channel){.id = f->channel, .credit = WINDOW_CONNECTION};
    if (f->type == FRAME_CREDIT && c && message_unpack_u32(f, &bytes, NULL) == 0 &&
        bytes <= WINDOW_CONNECTION)
        c->credit += bytes;
    if (f->type == FRAME_RESET && c)
        c->is_over = true;
}

static void turn(void)
{
    for (int i = 0; i < 4; i++) {
        event_base_loop(play.base, EVLOOP_NONBLOCK);
        play_outside();
    }
}

static void send_frames(const uint8_t *data, size_t size, const struct policy *none)
{
    const uint8_t *middle = data + size / 2;
    struct frame   f;
    long           n;

    while (!play.violated && play.n_channels < CHANNELS &&
           (n = frame_parse(data, size, PEER_INIT, &f, NULL)) > 0) {
        if (f.channel & CHANNEL_OF_INIT) { /* the others are not egress's */
            note_frame(&f);
            egress_frame(play.egress, &f);
        }
        turn();
        if (play.flags & CHANGES_MIND && data < middle && data + n >= middle && !play.violated)
            egress_set_policy(play.egress, none);
        data += n, size -= (size_t)n;
    }
}

static void play_sandbox(const uint8_t *data, size_t size)
{
    const char *const     registries[] = {registry, NULL};
    struct resolver_files files = {"/dev/null", "/dev/null"};
    struct event_base    *base = event_base_new();
    struct resolver      *resolver = resolver_new(base, &files);
    struct policy        *none = policy_new("none", NULL, NULL, NULL);
    struct policy *wide = policy_new(play.flags & NPM ? "npm" : "internet", NULL, registries, NULL);
    struct egress_spec spec = {.resolver = resolver, .operator_policy = wide};
    json_t            *log;

    play.base = base;
    play.egress = egress_new(base, &spec, &ops, NULL);
    send_frames(data, size, none);
    log = egress_log(play.egress);
    json_decref(log);
    json_decref(egress_take_refused(play.egress));
    egress_free(play.egress);
    resolver_free(resolver);
    policy_free(none);
    policy_free(wide);
    assert(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    event_base_free(base);
    for (size_t i = 0; i < play.n_outside; i++)
        fd_close(&play.outside[i].fd);
}

/* ---- messages alone ---- */

static void parse_message(const uint8_t *data, size_t size)
{
    struct dns_query     q, again;
    struct dns_addresses found;
    struct ip            address = ip_from_v4(public_address);
    uint8_t              bytes[DNS_MESSAGE_MAX];
    size_t               n;

    if (size > DNS_MESSAGE_MAX)
        return;
    memcpy(bytes, data, size);
    assert(dns_drop_additional(bytes, size) <= size);
    dns_answer_bad(data, size, bytes);
    dns_read_addresses(data, size, DNS_A, &found);
    dns_read_addresses(data, size, DNS_AAAA, &found);
    assert(found.n <= DNS_ADDRESSES_MAX);
    if (dns_parse_query(data, size, &q) < 0)
        return;
    dns_fits(data, size, data, size);
    assert(q.most >= DNS_PLAIN_MAX && q.most <= DNS_MESSAGE_MAX);
    n = dns_answer(data, &q, DNS_OK, &address, bytes);
    assert(dns_fits(data, size, bytes, n));
    n = dns_fit(bytes, n, &q, q.most);
    assert(dns_fits(data, size, bytes, n) && n <= q.most && !dns_is_truncated(bytes));
    assert(dns_read_addresses(bytes, n, DNS_A, &found) == 0 && found.n == 1);
    assert(memcmp(&found.list[0], &address, sizeof address) == 0);
    assert(dns_drop_additional(bytes, n) == n - (q.has_edns ? DNS_EDNS : 0));
    n = dns_ask(7, q.name, DNS_AAAA, bytes);
    assert(dns_parse_query(bytes, n, &again) == 0 && strcmp(q.name, again.name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    signal(SIGPIPE, SIG_IGN);
    play = (struct play){.flags = data[0]};
    if (play.flags & PARSE)
        parse_message(data + 1, size - 1);
    else
        play_sandbox(data + 1, size - 1);
    return 0;
}
