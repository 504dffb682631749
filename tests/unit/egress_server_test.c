/* The server's half of egress, with init's frames made by hand. The outside is a listener on
 * loopback, which only the exemption of the registries lets through: so the refusals that are
 * tested here are of connections that would succeed without the wall. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "egress/carry.h"
#include "egress/egress.h"
#include "pipe/message.h"

#define FIRST (CHANNEL_OF_INIT + 1)

static struct event_base *base;
static struct resolver   *resolver;
static struct policy     *policies[4];
static struct egress     *egress;
static int                listener, outside; /* outside: what was accepted, or -1 */
static uint16_t           port;
static struct buf         got; /* bytes of DATA towards the code inside */
static int                frames[64];
static uint32_t           credit;
static uint8_t            found[4096];
static size_t             found_size;
static const char        *violation;
static bool               has_room;
static char               hosts_path[] = "/tmp/egress-hosts-XXXXXX";

static void on_send(void *owner, enum frame_type type, uint32_t channel, uint8_t stream,
                    const void *payload, size_t size)
{
    (void)owner;
    (void)stream;
    assert_true(channel & CHANNEL_OF_INIT);
    frames[type]++;
    if (type == FRAME_DATA)
        buf_add(&got, payload, size);
    if (type == FRAME_CREDIT) {
        struct frame f = {type, stream, channel, payload, size};
        uint32_t     bytes;
        message_unpack_u32(&f, &bytes, NULL);
        credit += bytes;
    }
    if (type == FRAME_FOUND) {
        memcpy(found, payload, size);
        found_size = size;
    }
}

static void on_violated(void *owner, const char *sentence)
{
    (void)owner;
    violation = sentence;
}

static bool on_has_room(void *owner)
{
    (void)owner;
    return has_room;
}

static const struct egress_ops ops = {on_send, on_has_room, on_violated};

static struct policy *make_policy(const char *kind, const char *const *rules)
{
    autofree char *by_address = str_format("http://127.0.0.1:%u/", port),
                  *by_name = str_format("http://registry.test:%u/", port);
    const char *registries[] = {by_address, by_name, NULL};
    struct err  e = {0};

    return policy_new(kind, rules, registries, &e);
}

static int set_up(void **state)
{
    struct sockaddr_in    at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t             size = sizeof at;
    struct resolver_files files = {hosts_path, "/dev/null"};
    static const char     hosts[] = "127.0.0.1 registry.test private.test\n";

    (void)state;
    strcpy(hosts_path + strlen(hosts_path) - 6, "XXXXXX");
    autofd int fd = mkstemp(hosts_path);
    assert_int_equal(write(fd, hosts, strlen(hosts)), strlen(hosts));
    base = event_base_new();
    resolver = resolver_new(base, &files);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(listener, 16), 0);
    getsockname(listener, (struct sockaddr *)&at, &size);
    port = ntohs(at.sin_port);
    outside = -1;
    buf_init(&got, 1 << 22);
    memset(frames, 0, sizeof frames);
    credit = 0;
    found_size = 0;
    violation = NULL;
    has_room = true;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    egress_free(egress);
    egress = NULL;
    resolver_free(resolver);
    for (size_t i = 0; i < 4; i++) {
        policy_free(policies[i]);
        policies[i] = NULL;
    }
    event_base_free(base);
    fd_close(&listener);
    fd_close(&outside);
    buf_done(&got);
    unlink(hosts_path);
    return 0;
}

static void begin(const char *kind, const struct egress_limits *limits)
{
    struct egress_spec spec = {.resolver = resolver};

    policies[0] = make_policy(kind, NULL);
    assert_non_null(policies[0]);
    spec.operator_policy = policies[0];
    if (limits)
        spec.limits = *limits;
    egress = egress_new(base, &spec, &ops, NULL);
}

static void frame(enum frame_type type, uint32_t channel, uint8_t stream, const void *bytes,
                  size_t size)
{
    struct frame f = {type, stream, channel, bytes, size};

    egress_frame(egress, &f);
}

static void connect_to(uint32_t channel, const char *address, uint16_t to_port)
{
    struct message_connect m = {.port = to_port};
    struct ip              ip;
    autobuf struct buf     b;

    assert_int_equal(ip_parse(address, &ip), 0);
    memcpy(m.address, ip.bytes, 16);
    buf_init(&b, 32);
    message_pack_connect(&b, &m);
    frame(FRAME_CONNECT, channel, 0, b.data, b.size);
}

static void give_credit(uint32_t channel, uint32_t bytes)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    message_pack_u32(&b, bytes);
    frame(FRAME_CREDIT, channel, STREAM_IN, b.data, b.size);
}

static void turn(int ms)
{
    struct timeval t = {.tv_usec = ms * 1000};

    event_base_loopexit(base, &t);
    event_base_dispatch(base);
}

/* Turns the loop until the condition holds, at most five seconds. */
#define WAIT(condition)                                                                            \
    do {                                                                                           \
        int left_ = 5000;                                                                          \
        while (!(condition) && left_-- > 0)                                                        \
            turn(1);                                                                               \
        assert_true(left_ >= 0);                                                                   \
    } while (0)

static void accept_outside(void)
{
    fd_close(&outside);
    WAIT((outside = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0);
}

static size_t read_outside(char *ret, size_t size)
{
    ssize_t n = -1;

    for (int i = 0; i < 1000 && n < 0; i++) {
        turn(1);
        n = read(outside, ret, size);
    }
    assert_true(n >= 0);
    return (size_t)n;
}

static json_t *refused(void)
{
    static json_t *last;

    json_decref(last);
    last = egress_take_refused(egress);
    return last;
}

/* The only row's. */
static const char *refused_word(const char *name)
{
    const json_t *list = refused();

    assert_int_equal(json_array_size(list), 1);
    return json_string_value(json_object_get(json_array_get(list, 0), name));
}

static const char *refused_rule(void)
{
    return refused_word("rule");
}

static void look_up(uint32_t channel, const char *name, enum dns_type type)
{
    uint8_t query[DNS_MESSAGE_MAX];
    size_t  size = dns_ask(0x4242, name, type, query);

    found_size = 0;
    frame(FRAME_LOOKUP, channel, 0, query, size);
    WAIT(found_size > 0);
}

/* ---- carrying ---- */

static void test_bytes_both_ways_and_half_close(void **state)
{
    char text[16];

    (void)state;
    begin("npm", NULL);
    connect_to(FIRST, "127.0.0.1", port);
    frame(FRAME_DATA, FIRST, STREAM_OUT, "early", 5);
    accept_outside();
    assert_int_equal(read_outside(text, sizeof text), 5);
    frame(FRAME_END, FIRST, STREAM_OUT, NULL, 0);
    assert_int_equal(read_outside(text, sizeof text), 0); /* the end arrived */
    assert_int_equal(write(outside, "answer", 6), 6);
    WAIT(got.size == 6);
    fd_close(&outside);
    WAIT(frames[FRAME_END] == 1);
    assert_int_equal(frames[FRAME_RESET], 0);

    autojson json_t *log = egress_log(egress);
    assert_int_equal(json_array_size(log), 1);
    WAIT(json_object_get(json_array_get(log, 0), "ms"));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(log, 0), "receivedBytes")),
                     6);
    assert_int_equal(json_array_size(refused()), 0);
}

static void test_windows_hold(void **state)
{
    static uint8_t bytes[WINDOW_CONNECTION];

    (void)state;
    begin("npm", NULL);
    connect_to(FIRST, "127.0.0.1", port);
    accept_outside();
    for (int i = 0; i < 4; i++)
        assert_true(write(outside, bytes, sizeof bytes) > 0);
    WAIT(got.size == WINDOW_CONNECTION);
    turn(20);
    assert_int_equal(got.size, WINDOW_CONNECTION); /* not a byte more without credit */
    give_credit(FIRST, 1000);
    WAIT(got.size == WINDOW_CONNECTION + 1000);
    turn(20);
    assert_int_equal(got.size, WINDOW_CONNECTION + 1000);

    /* Credit for what goes out comes when it has gone out. */
    frame(FRAME_DATA, FIRST, STREAM_OUT, bytes, sizeof bytes);
    WAIT(credit > 0);
    assert_null(violation);
    give_credit(FIRST, WINDOW_CONNECTION + 1);
    assert_non_null(violation);
}

static void test_nothing_is_read_while_the_pipe_is_full(void **state)
{
    (void)state;
    begin("npm", NULL);
    connect_to(FIRST, "127.0.0.1", port);
    accept_outside();
    has_room = false;
    assert_int_equal(write(outside, "answer", 6), 6);
    turn(30);
    assert_int_equal(got.size, 0);
    has_room = true;
    egress_go_on(egress);
    WAIT(got.size == 6);
    assert_true(egress_is_sending(egress)); /* code may still write */
    frame(FRAME_END, FIRST, STREAM_OUT, NULL, 0);
    assert_false(egress_is_sending(egress));
}

static void test_data_past_the_window_is_a_violation(void **state)
{
    static uint8_t bytes[WINDOW_CONNECTION];

    (void)state;
    begin("npm", NULL);
    connect_to(FIRST, "127.0.0.1", port);
    frame(FRAME_DATA, FIRST, STREAM_OUT, bytes, sizeof bytes);
    assert_null(violation);
    frame(FRAME_DATA, FIRST, STREAM_OUT, bytes, 1);
    assert_non_null(violation);
}

static void test_resets_travel(void **state)
{
    char byte;

    (void)state;
    begin("npm", NULL);
    connect_to(FIRST, "127.0.0.1", port);
    accept_outside();
    turn(5);
    fd_reset(&outside);
    WAIT(frames[FRAME_RESET] == 1);
    frame(FRAME_DATA, FIRST, STREAM_OUT, "x", 1); /* crossed it: dropped */
    assert_null(violation);

    connect_to(FIRST + 1, "127.0.0.1", port);
    accept_outside();
    turn(5);
    frame(FRAME_RESET, FIRST + 1, 0, NULL, 0);
    for (int i = 0; i < 100 && read(outside, &byte, 1) < 0 && errno == EAGAIN; i++)
        turn(1);
    assert_int_equal(read(outside, &byte, 1), 0); /* after ECONNRESET the socket is at its end */
}

static void test_numbers_are_inits_and_ascend(void **state)
{
    (void)state;
    begin("none", NULL);
    connect_to(FIRST + 5, "127.0.0.1", port);
    assert_null(violation);
    connect_to(FIRST + 5, "127.0.0.1", port);
    assert_non_null(violation);
    violation = NULL;
    connect_to(7, "127.0.0.1", port);
    assert_non_null(violation);
}

/* ---- limits ---- */

static bool on_carried(void *owner, const struct ip *address)
{
    (void)owner;
    (void)address;
    return true;
}

static void on_carry_over(void *owner, const struct err *e)
{
    int *ended = owner;

    assert_int_equal(e->kind, ERR_TIMEOUT);
    *ended = 1;
}

static void test_bytes_a_second_inwards(void **state)
{
    static uint8_t             bytes[30000];
    const struct egress_limits slow = {.bytes_per_second = 20000};

    (void)state;
    begin("npm", &slow);
    connect_to(FIRST, "127.0.0.1", port);
    accept_outside();
    assert_int_equal(write(outside, bytes, sizeof bytes), sizeof bytes);
    turn(500);
    assert_true(got.size > 2000 && got.size < 22000);
    WAIT(got.size == sizeof bytes);
}

static size_t drain_outside(void)
{
    static char bytes[65536];
    ssize_t     n = read(outside, bytes, sizeof bytes);

    return n > 0 ? (size_t)n : 0;
}

static void test_bytes_a_second_outwards(void **state)
{
    static uint8_t             bytes[30000];
    const struct egress_limits slow = {.bytes_per_second = 20000};
    size_t                     size = 0;
    int64_t                    began = clock_ms();

    (void)state;
    begin("npm", &slow);
    connect_to(FIRST, "127.0.0.1", port);
    frame(FRAME_DATA, FIRST, STREAM_OUT, bytes, sizeof bytes);
    frame(FRAME_END, FIRST, STREAM_OUT, NULL, 0);
    accept_outside();
    for (int i = 0; i < 10; i++) {
        turn(50);
        size += drain_outside();
    }
    assert_true(size > 2000 && size < 22000);
    WAIT((size += drain_outside()) == sizeof bytes);
    /* it began with a twentieth of a second's worth, and never more than a second's is saved */
    assert_true(clock_ms() - began >= 1000 * (int64_t)sizeof bytes / 20000 - 100);
}

/* Both ways share what there is, and neither starves. */
static void test_bytes_a_second_both_ways_together(void **state)
{
    static uint8_t             bytes[40000];
    const struct egress_limits slow = {.bytes_per_second = 40000};
    size_t                     size = 0;
    int64_t                    began = clock_ms(), took;

    (void)state;
    begin("npm", &slow);
    connect_to(FIRST, "127.0.0.1", port);
    frame(FRAME_DATA, FIRST, STREAM_OUT, bytes, sizeof bytes);
    accept_outside();
    assert_int_equal(write(outside, bytes, sizeof bytes), sizeof bytes);
    WAIT((size += drain_outside()) > sizeof bytes / 4 && got.size > 0);
    WAIT((size += drain_outside()) == sizeof bytes && got.size == sizeof bytes);
    took = clock_ms() - began;
    assert_true(took >= 1900);
}

static void test_silence_ends_a_connection(void **state)
{
    const struct egress_limits brief = {.idle_ms = 2000};
    int64_t                    began;
    char                       byte;

    (void)state;
    begin("npm", &brief);
    connect_to(FIRST, "127.0.0.1", port);
    accept_outside();
    for (int i = 0; i < 4; i++) { /* either way's bytes count as life */
        turn(600);
        frame(FRAME_DATA, FIRST, STREAM_OUT, "x", 1);
        turn(600);
        assert_int_equal(write(outside, "y", 1), 1);
    }
    turn(20);
    assert_int_equal(got.size, 4);
    assert_int_equal(frames[FRAME_RESET], 0);
    began = clock_ms();
    WAIT(frames[FRAME_RESET] == 1);
    assert_true(clock_ms() - began >= 1500);
    assert_string_equal(refused_rule(), "idle");
    while (read(outside, &byte, 1) == 1)
        ;
    assert_int_not_equal(errno, EAGAIN); /* the outside has seen its end */
}

/* Who waits for his share is not silent: here he never gets one. */
static void test_a_metered_connection_is_not_idle(void **state)
{
    static const struct carry_ops none = {
        .connected = on_carried, .has_room = on_has_room, .over = on_carry_over};
    struct meter            empty = {.per_second = 1};
    struct ip               address = ip_from_v4((uint8_t[]){127, 0, 0, 1});
    const struct carry_spec spec = {
        .addresses = &address, .n = 1, .port = port, .credit = 9, .idle_ms = 150, .meter = &empty};
    int           ended = 0;
    struct carry *c = carry_new(base, &spec, &none, &ended);

    (void)state;
    accept_outside();
    assert_int_equal(write(outside, "x", 1), 1);
    for (int i = 0; i < 10; i++) {
        turn(50);
        carry_go_on(c);
    }
    assert_int_equal(ended, 0);
    WAIT(ended == 1); /* when nobody fills it */
    carry_free(c);
}

/* ---- refusing ---- */

static void test_policies_refuse(void **state)
{
    static const char *const kinds[] = {"none", "internet"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        frames[FRAME_RESET] = 0;
        begin(kinds[i], NULL);
        connect_to(FIRST, "127.0.0.1", (uint16_t)(port ^ 1)); /* next to the exempt one */
        assert_int_equal(frames[FRAME_RESET], 1);
        /* whatever the policy: no rule would allow it */
        assert_string_equal(refused_rule(), "loopback address 127.0.0.1");
        connect_to(FIRST + 1, "198.18.77.77", 443); /* nobody's made-up address */
        assert_int_equal(frames[FRAME_RESET], 2);
        assert_string_equal(refused_word("allow"),
                            "nothing to allow: it stands for no name of this sandbox");
        connect_to(FIRST + 2, "93.184.216.34", 0);
        assert_int_equal(frames[FRAME_RESET], 3);
        assert_string_equal(refused_rule(), "port 0");
        if (i == 0) {
            connect_to(FIRST + 3, "93.184.216.34", 443);
            assert_int_equal(frames[FRAME_RESET], 4);
            assert_string_equal(refused_rule(), "network policy 'none'");
        }
        egress_free(egress);
        egress = NULL;
        policy_free(policies[0]);
        policies[0] = NULL;
    }
}

static void test_the_narrower_of_two_policies(void **state)
{
    struct egress_spec spec = {.resolver = resolver};

    (void)state;
    policies[0] = make_policy("npm", NULL);
    policies[1] = make_policy("internet", NULL);
    policies[2] = make_policy("none", NULL);
    spec.operator_policy = policies[0];
    spec.policy = policies[1];
    egress = egress_new(base, &spec, &ops, NULL);
    connect_to(FIRST, "1.1.1.1", 443);
    assert_int_equal(frames[FRAME_RESET], 1);
    assert_string_equal(refused_rule(), "network policy 'npm'");

    connect_to(FIRST + 1, "127.0.0.1", port);
    accept_outside();
    turn(5);
    assert_int_equal(frames[FRAME_RESET], 1);
    egress_set_policy(egress, policies[2]); /* on a live connection */
    assert_int_equal(frames[FRAME_RESET], 2);
    assert_string_equal(refused_rule(), "network policy 'none'");
}

static void begin_with_two(const char *operator_kind, const char *kind)
{
    struct egress_spec spec = {.resolver = resolver};

    spec.operator_policy = policies[0] = make_policy(operator_kind, NULL);
    spec.policy = policies[1] = make_policy(kind, NULL);
    egress = egress_new(base, &spec, &ops, NULL);
}

/* Options are the operator's: they do not help against the sandbox's own policy. */
static void test_how_to_allow_depends_on_whose_policy_objects(void **state)
{
    (void)state;
    begin_with_two("npm", "none");
    connect_to(FIRST, "127.0.0.1", port);
    assert_string_equal(refused_word("allow"), "a sandbox without this policy of its own");
    look_up(FIRST + 1, "registry.test", DNS_A);
    assert_string_equal(refused_word("allow"), "a sandbox without this policy of its own");
    connect_to(FIRST + 2, "1.1.1.1", 443);
    assert_string_equal(refused_word("allow"), "--allow 1.1.1.1:443, or --network internet");
}

/* Wider and narrower again, on a live sandbox; the policy before may be freed at once. */
static void test_a_policy_changes(void **state)
{
    (void)state;
    begin_with_two("npm", "none");
    connect_to(FIRST, "127.0.0.1", port);
    assert_int_equal(frames[FRAME_RESET], 1);
    assert_string_equal(refused_rule(), "network policy 'none'");

    policies[2] = make_policy("internet", NULL);
    egress_set_policy(egress, policies[2]);
    policy_free(policies[1]);
    policies[1] = NULL;
    connect_to(FIRST + 1, "127.0.0.1", port);
    accept_outside();
    assert_int_equal(frames[FRAME_RESET], 1);
    connect_to(FIRST + 2, "1.1.1.1", 443); /* the operator's holds */
    assert_int_equal(frames[FRAME_RESET], 2);
    assert_string_equal(refused_rule(), "network policy 'npm'");

    egress_set_policy(egress, NULL); /* the operator's alone: nothing of it changes */
    assert_int_equal(frames[FRAME_RESET], 2);
    frame(FRAME_DATA, FIRST + 1, STREAM_OUT, "x", 1);
    char byte;
    assert_int_equal(read_outside(&byte, 1), 1);
}

/* One that is still being resolved does not slip through. */
static void test_a_policy_changes_while_a_name_is_resolved(void **state)
{
    struct dns_addresses made_up;
    char                 text[IP_TEXT];

    (void)state;
    begin_with_two("npm", "npm");
    look_up(FIRST, "registry.test", DNS_A);
    assert_int_equal(dns_read_addresses(found, found_size, DNS_A, &made_up), 0);
    ip_format(&made_up.list[0], text);
    connect_to(FIRST + 1, text, port);
    policies[2] = make_policy("none", NULL);
    egress_set_policy(egress, policies[2]);
    assert_int_equal(frames[FRAME_RESET], 1);
    turn(50);
    assert_true(accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EAGAIN);
}

static void test_connections_at_once(void **state)
{
    const struct egress_limits few = {.connections = 2};

    (void)state;
    begin("npm", &few);
    for (uint32_t i = 0; i < 3; i++)
        connect_to(FIRST + i, "127.0.0.1", port);
    assert_int_equal(frames[FRAME_RESET], 1);
    assert_string_equal(refused_rule(), "too many connections");
    frame(FRAME_RESET, FIRST, 0, NULL, 0);
    connect_to(FIRST + 3, "127.0.0.1", port); /* there is room again */
    assert_int_equal(frames[FRAME_RESET], 1);
}

static void test_connects_a_second(void **state)
{
    const struct egress_limits few = {.connects_per_second = 3};

    (void)state;
    begin("npm", &few);
    for (uint32_t i = 0; i < 20; i++) {
        connect_to(FIRST + i, "127.0.0.1", port);
        frame(FRAME_RESET, FIRST + i, 0, NULL, 0);
    }
    /* six at once are two seconds' worth; a slow machine may have earned another */
    assert_in_range(frames[FRAME_RESET], 12, 14);
    assert_string_equal(refused_rule(), "too many new connections");
    turn(700); /* two more */
    frames[FRAME_RESET] = 0;
    connect_to(FIRST + 20, "127.0.0.1", port);
    assert_int_equal(frames[FRAME_RESET], 0);
}

static void test_what_does_not_answer_is_said(void **state)
{
    (void)state;
    begin("npm", NULL);
    fd_close(&listener);
    connect_to(FIRST, "127.0.0.1", port);
    WAIT(frames[FRAME_RESET] == 1);
    assert_string_equal(refused_rule(), "unreachable");
}

/* ---- names ---- */

static void test_a_name_has_a_made_up_address_that_leads_to_it(void **state)
{
    struct dns_addresses got_addresses;
    char                 text[IP_TEXT];

    (void)state;
    begin("npm", NULL);
    look_up(FIRST, "registry.test", DNS_A);
    assert_int_equal(dns_read_addresses(found, found_size, DNS_A, &got_addresses), 0);
    assert_int_equal(got_addresses.n, 1);
    assert_string_equal(ip_special(&got_addresses.list[0]), "reserved");
    ip_format(&got_addresses.list[0], text);
    connect_to(FIRST + 1, text, port);
    accept_outside();

    connect_to(FIRST + 2, text, (uint16_t)(port ^ 1)); /* the name, but not its port */
    assert_int_equal(frames[FRAME_RESET], 1);
    assert_string_equal(refused_rule(), "network policy 'npm'");

    look_up(FIRST + 3, "registry.test", DNS_AAAA);
    assert_int_equal(dns_read_addresses(found, found_size, DNS_AAAA, &got_addresses), 0);
    assert_int_equal(got_addresses.n, 0);
    assert_int_equal(got_addresses.code, DNS_OK);
}

static void test_names_that_are_refused_do_not_exist(void **state)
{
    static const struct {
        const char *policy, *name, *rule;
    } list[] = {
        {"none", "registry.test", "network policy 'none'"},
        {"npm", "other.test", "network policy 'npm'"},
        {"internet", "private.test", "loopback address 127.0.0.1"},
        {"internet", "localhost", NULL},
        {"internet", "1.0.0.127.in-addr.arpa", NULL},
    };
    struct dns_addresses got_addresses;

    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        begin(list[i].policy, NULL);
        look_up(FIRST, list[i].name, DNS_A);
        assert_int_equal(dns_read_addresses(found, found_size, DNS_A, &got_addresses), 0);
        assert_int_equal(got_addresses.code, DNS_NO_SUCH_NAME);
        if (list[i].rule)
            assert_string_equal(refused_rule(), list[i].rule);
        egress_free(egress);
        egress = NULL;
        policy_free(policies[0]);
        policies[0] = NULL;
    }
}

static enum dns_code code_of_lookup(uint32_t channel, const char *name, enum dns_type type)
{
    look_up(channel, name, type);
    return dns_code(found);
}

/* ANY, zone transfers and their like: whatever the name servers would say, they are not asked. */
static void test_questions_about_many_records_are_refused(void **state)
{
    static const int types[] = {128, 249, 251, 252, 255};

    (void)state;
    begin("npm", NULL);
    for (uint32_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_int_equal(code_of_lookup(FIRST + i, "registry.test", (enum dns_type)types[i]),
                         DNS_REFUSED);
}

static void test_lookups_a_second(void **state)
{
    const struct egress_limits few = {.lookups_per_second = 5};
    int                        answered = 0;

    (void)state;
    begin("npm", &few);
    for (uint32_t i = 0; i < 30; i++)
        answered += code_of_lookup(FIRST + i, "registry.test", DNS_AAAA) == DNS_OK;
    assert_in_range(answered, 10, 11);
    assert_string_equal(refused_rule(), "too many lookups");
    turn(450);
    assert_int_equal(code_of_lookup(FIRST + 30, "registry.test", DNS_A), DNS_OK);
}

/* The registry listens at 127.0.0.1 alone; nothing else of the loopback is reached for its sake. */
static void test_a_registry_named_localhost_has_both_addresses(void **state)
{
    autofree char     *url = str_format("http://localhost:%u/", port);
    const char        *registries[] = {url, NULL};
    struct egress_spec spec = {.resolver = resolver};

    (void)state;
    spec.operator_policy = policies[0] = policy_new("npm", NULL, registries, NULL);
    egress = egress_new(base, &spec, &ops, NULL);
    connect_to(FIRST, "127.0.0.1", port);
    accept_outside();
    connect_to(FIRST + 1, "::1", port);
    accept_outside();
    assert_int_equal(json_array_size(refused()), 0);
    connect_to(FIRST + 2, "127.0.0.1", port == 1 ? 2 : port - 1);
    assert_string_equal(refused_rule(), "loopback address 127.0.0.1");
    connect_to(FIRST + 3, "::1", port == 1 ? 2 : port - 1);
    assert_string_equal(refused_rule(), "loopback address ::1");
    assert_int_equal(frames[FRAME_RESET], 2);
}

static void test_the_same_refusal_is_told_once(void **state)
{
    (void)state;
    begin("none", NULL);
    for (uint32_t i = 0; i < 5; i++)
        connect_to(FIRST + i, "1.1.1.1", 443);
    assert_int_equal(frames[FRAME_RESET], 5);
    assert_int_equal(json_array_size(refused()), 1);
    assert_int_equal(json_array_size(refused()), 0);
}

static void test_refusals_that_are_not_listed_are_counted(void **state)
{
    const json_t *list, *last;

    (void)state;
    begin("none", NULL);
    for (uint32_t i = 0; i < 150; i++) /* less than a burst, so that it is the policy's */
        connect_to(FIRST + i, "1.1.1.1", (uint16_t)(100 + i));
    list = refused();
    assert_int_equal(json_array_size(list), 101);
    last = json_array_get(list, 100);
    assert_string_equal(json_string_value(json_object_get(last, "host")), "and 50 more");
    assert_true(json_is_null(json_object_get(last, "port")));
    assert_int_equal(json_array_size(refused()), 0); /* told once */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_bytes_both_ways_and_half_close),
        TEST(test_windows_hold),
        TEST(test_nothing_is_read_while_the_pipe_is_full),
        TEST(test_data_past_the_window_is_a_violation),
        TEST(test_resets_travel),
        TEST(test_numbers_are_inits_and_ascend),
        TEST(test_bytes_a_second_inwards),
        TEST(test_bytes_a_second_outwards),
        TEST(test_bytes_a_second_both_ways_together),
        TEST(test_silence_ends_a_connection),
        TEST(test_a_metered_connection_is_not_idle),
        TEST(test_policies_refuse),
        TEST(test_the_narrower_of_two_policies),
        TEST(test_how_to_allow_depends_on_whose_policy_objects),
        TEST(test_a_policy_changes),
        TEST(test_a_policy_changes_while_a_name_is_resolved),
        TEST(test_connections_at_once),
        TEST(test_connects_a_second),
        TEST(test_questions_about_many_records_are_refused),
        TEST(test_lookups_a_second),
        TEST(test_what_does_not_answer_is_said),
        TEST(test_a_name_has_a_made_up_address_that_leads_to_it),
        TEST(test_names_that_are_refused_do_not_exist),
        TEST(test_a_registry_named_localhost_has_both_addresses),
        TEST(test_the_same_refusal_is_told_once),
        TEST(test_refusals_that_are_not_listed_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
