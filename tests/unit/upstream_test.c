/* Name servers, asked for real: each test is a child in a network namespace of its own, in which
 * 127.0.0.2, .3 and .4 are name servers that behave as the test says. On the same loop are the
 * resolver, and an egress whose lookups are asked of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "egress/egress.h"
#include "programs/inside.h"

enum { SECONDS = 30, SERVERS = 3, TXT = 16, LONG = 3000, HUGE_TEXT = 60000 };
#define FIRST (CHANNEL_OF_INIT + 1)

/* What a server does with a query. */
enum behaviour {
    ANSWERS,
    SILENT,
    FAILS,         /* SERVFAIL */
    REFUSES,       /* REFUSED */
    KNOWS_NO_EDNS, /* FORMERR to what has it */
    KNOWS_NO_NAME, /* NXDOMAIN */
    SPEAKS_NO_TCP,
};

static struct server {
    enum behaviour behaviour;
    int            datagram, stream;
    int            asked, asked_by_stream, asked_with_edns;
} servers[SERVERS];

static size_t             text_size; /* of a TXT record */
static struct event_base *base;
static struct resolver   *resolver;
static char               conf_path[40];

/* ---- the servers ---- */

static size_t add_text(uint8_t *message, size_t size)
{
    uint8_t record[] = {0xc0, 12, 0, TXT, 0, 1, 0, 0, 0, 60, 0, 0}; /* its data are ours alone */

    record[10] = (uint8_t)(text_size >> 8), record[11] = (uint8_t)text_size;
    message[7] = 1;
    memcpy(message + size, record, sizeof record);
    memset(message + size + sizeof record, 'x', text_size);
    return size + sizeof record + text_size;
}

/* 0: no answer. */
static size_t answer(struct server *s, const uint8_t *query, size_t size, size_t most, uint8_t *ret)
{
    static const enum dns_code codes[] = {[FAILS] = DNS_SERVER_FAILED,
                                          [REFUSES] = DNS_REFUSED,
                                          [KNOWS_NO_NAME] = DNS_NO_SUCH_NAME,
                                          [SPEAKS_NO_TCP] = DNS_OK};
    struct dns_query           q;
    struct ip                  address = ip_from_v4((uint8_t[]){93, 184, 216, 34});
    enum dns_code              code = codes[s->behaviour];

    CHECK(dns_parse_query(query, size, &q) == 0);
    s->asked++;
    s->asked_with_edns += q.has_edns;
    if (s->behaviour == SILENT)
        return 0;
    if (s->behaviour == KNOWS_NO_EDNS && q.has_edns)
        code = (enum dns_code)1;
    size = dns_answer(query, &q, code, code == DNS_OK && q.type == DNS_A ? &address : NULL, ret);
    if (code == DNS_OK && q.type == TXT)
        size = add_text(ret, size);
    return dns_fit(ret, size, &q, most ? most : q.most);
}

static void on_datagram(evutil_socket_t fd, short what, void *arg)
{
    static uint8_t query[4096], reply[DNS_ANSWER_MAX + DNS_EDNS];
    union address  from;
    socklen_t      from_size = sizeof from;
    ssize_t        n = recvfrom(fd, query, sizeof query, 0, &from.any, &from_size);
    size_t         size;

    (void)what;
    CHECK(n > 0);
    size = answer(arg, query, (size_t)n, 0, reply);
    if (size > 0)
        CHECK(sendto(fd, reply, size, 0, &from.any, from_size) == (ssize_t)size);
}

static void on_query_by_stream(evutil_socket_t fd, short what, void *arg)
{
    static uint8_t query[4096], reply[2 + DNS_ANSWER_MAX + DNS_EDNS];
    ssize_t        n = read(fd, query, sizeof query);
    size_t         size;

    (void)what;
    CHECK(n > 2);
    size = answer(arg, query + 2, (size_t)n - 2, DNS_ANSWER_MAX, reply + 2);
    reply[0] = (uint8_t)(size >> 8), reply[1] = (uint8_t)size;
    CHECK(write(fd, reply, 1) == 1); /* it comes in pieces */
    CHECK(fd_write_all(fd, reply + 1, size + 1) == 0);
}

static void on_stream(evutil_socket_t listening_fd, short what, void *arg)
{
    struct server *s = arg;
    int            fd = accept(listening_fd, NULL, NULL);

    (void)what;
    CHECK(fd >= 0);
    s->asked_by_stream++;
    if (s->behaviour == SPEAKS_NO_TCP)
        close(fd);
    else
        CHECK(event_base_once(base, fd, EV_READ, on_query_by_stream, s, NULL) == 0);
}

/* Nothing is ever given back: the child ends. */
static void listen_for(int fd, event_callback_fn callback, struct server *s)
{
    struct event *e = event_new(base, fd, EV_READ | EV_PERSIST, callback, s);

    CHECK(e && event_add(e, NULL) == 0);
}

static void start_servers(const enum behaviour *list, size_t n)
{
    static const char *const hosts[] = {"127.0.0.2", "127.0.0.3", "127.0.0.4"};
    int                      fd = memfd_create("resolv.conf", MFD_CLOEXEC);

    CHECK(fd >= 0);
    snprintf(conf_path, sizeof conf_path, "/proc/self/fd/%d", fd);
    base = event_base_new();
    for (size_t i = 0; i < n; i++) {
        servers[i].behaviour = list[i];
        servers[i].datagram = bound(SOCK_DGRAM, hosts[i], DNS_PORT);
        servers[i].stream = listener(hosts[i], DNS_PORT);
        listen_for(servers[i].datagram, on_datagram, &servers[i]);
        listen_for(servers[i].stream, on_stream, &servers[i]);
        dprintf(fd, "nameserver %s\n", hosts[i]);
    }
    resolver = resolver_new(base, &(struct resolver_files){"/dev/null", conf_path});
}

/* ---- an egress that asks them ---- */

static struct policy *policy;
static struct egress *egress;
static uint8_t        found[DNS_ANSWER_MAX + 2];
static size_t         found_size;
static int            n_found;
static struct buf     stream;
static bool           was_reset, has_ended;
static uint32_t       last = FIRST;

static void on_send(void *owner, enum frame_type type, uint32_t channel, uint8_t which,
                    const void *payload, size_t size)
{
    (void)owner;
    (void)channel;
    (void)which;
    if (type == FRAME_FOUND) {
        CHECK(size <= DNS_MESSAGE_MAX);
        memcpy(found, payload, size);
        n_found++;
        found_size = size;
    }
    if (type == FRAME_DATA)
        CHECK(buf_add(&stream, payload, size) == 0);
    was_reset |= type == FRAME_RESET;
    has_ended |= type == FRAME_END;
}

static bool has_room(void *owner)
{
    (void)owner;
    return true;
}

static void on_violated(void *owner, const char *sentence)
{
    (void)owner;
    fprintf(stderr, "%s\n", sentence);
    _exit(1);
}

static void begin(const enum behaviour *list, size_t n)
{
    static const struct egress_ops ops = {on_send, has_room, on_violated};

    start_servers(list, n);
    policy = policy_new("internet", NULL, NULL, NULL);
    egress = egress_new(
        base, &(struct egress_spec){.resolver = resolver, .operator_policy = policy}, &ops, NULL);
    buf_init(&stream, 1 << 20);
}

#define BEGIN(...)                                                                                 \
    begin((const enum behaviour[]){__VA_ARGS__},                                                   \
          sizeof((const enum behaviour[]){__VA_ARGS__}) / sizeof(enum behaviour))

static void send_frame(enum frame_type type, uint32_t channel, uint8_t which, const void *bytes,
                       size_t size)
{
    struct frame f = {type, which, channel, bytes, size};

    egress_frame(egress, &f);
}

#define TURN_UNTIL(condition)                                                                      \
    do {                                                                                           \
        int64_t began_ = clock_ms();                                                               \
        while (!(condition) && clock_ms() - began_ < 1000 * (SECONDS - 5))                         \
            event_base_loop(base, EVLOOP_ONCE);                                                    \
        CHECK(condition);                                                                          \
    } while (0)

static enum dns_code look_up(enum dns_type type, size_t edns)
{
    uint8_t query[DNS_MESSAGE_MAX];
    size_t  size = dns_ask(0x4242, "a.test", type, query);

    if (edns > 0)
        size = dns_add_edns(query, size, edns);
    found_size = 0;
    send_frame(FRAME_LOOKUP, last++, 0, query, size);
    TURN_UNTIL(found_size > 0);
    CHECK(found[0] == 0x42 && found[1] == 0x42);
    return dns_code(found);
}

static void expect_line(const char *host, const char *rule)
{
    json_t *list = egress_take_refused(egress), *row = json_array_get(list, 0);

    CHECK(json_array_size(list) == 1);
    CHECK(strcmp(json_string_value(json_object_get(row, "host")), host) == 0);
    CHECK(strcmp(json_string_value(json_object_get(row, "rule")), rule) == 0);
    json_decref(list);
}

static void expect_no_line(void)
{
    json_t *list = egress_take_refused(egress);

    CHECK(json_array_size(list) == 0);
    json_decref(list);
}

static bool has_address(void)
{
    struct dns_addresses a;

    return dns_read_addresses(found, found_size, DNS_A, &a) == 0 && a.n == 1;
}

/* ---- tests ---- */

static void a_failure_is_not_final(void)
{
    BEGIN(FAILS, REFUSES, ANSWERS);
    CHECK(look_up(DNS_A, 0) == DNS_OK && has_address());
    CHECK(servers[0].asked == 2 && servers[1].asked == 2 && servers[2].asked == 2); /* A, AAAA */
    CHECK(look_up((enum dns_type)TXT, 0) == DNS_OK);
    CHECK(servers[2].asked == 3);
    expect_no_line();
}

static void that_all_fail_is_said(void)
{
    BEGIN(FAILS, FAILS);
    CHECK(look_up(DNS_A, 0) == DNS_SERVER_FAILED);
    expect_line("a.test", "not resolved");
    CHECK(look_up(DNS_AAAA, 0) ==
          DNS_SERVER_FAILED); /* else libc says that there is no such name */
    expect_line("a.test", "not resolved");
    CHECK(look_up((enum dns_type)TXT, 0) == DNS_SERVER_FAILED);
    expect_line("a.test", "not resolved");
    CHECK(servers[0].asked > 2 && servers[1].asked > 2);
}

static void that_there_is_no_such_name_is_an_answer(void)
{
    BEGIN(KNOWS_NO_NAME, ANSWERS);
    CHECK(look_up(DNS_A, 0) == DNS_NO_SUCH_NAME && look_up(DNS_AAAA, 0) == DNS_NO_SUCH_NAME);
    CHECK(look_up((enum dns_type)TXT, 0) == DNS_NO_SUCH_NAME);
    CHECK(servers[1].asked == 0);
    expect_no_line();
}

/* Programs ask for both kinds of address at once: the servers are asked once. */
static void questions_for_one_name_are_asked_once(void)
{
    uint8_t query[DNS_MESSAGE_MAX];

    BEGIN(ANSWERS);
    for (uint32_t i = 0; i < 4; i++)
        send_frame(FRAME_LOOKUP, last++, 0, query,
                   dns_ask((uint16_t)i, "a.test", i % 2 ? DNS_AAAA : DNS_A, query));
    TURN_UNTIL(n_found == 4);
    CHECK(servers[0].asked == 2); /* A and AAAA */
    CHECK(look_up(DNS_A, 0) == DNS_OK && has_address() && servers[0].asked == 2);
}

static void silence_leads_to_the_next(void)
{
    BEGIN(SILENT, ANSWERS);
    CHECK(look_up(DNS_A, 0) == DNS_OK && has_address());
    CHECK(servers[0].asked == 2); /* A and AAAA, none of them again before the other one */
}

static void who_knows_no_edns_is_asked_without(void)
{
    BEGIN(KNOWS_NO_EDNS);
    CHECK(look_up((enum dns_type)TXT, 0) == DNS_OK);
    CHECK(servers[0].asked == 2 && servers[0].asked_with_edns == 1);
}

static void large_answers(void)
{
    BEGIN(ANSWERS);
    text_size = 800; /* a datagram of ours holds it, but not one of plain DNS */
    CHECK(look_up((enum dns_type)TXT, 0) == DNS_OK);
    CHECK(dns_is_truncated(found) && found_size < 100 && servers[0].asked_by_stream == 0);
    CHECK(look_up((enum dns_type)TXT, 1232) == DNS_OK);
    CHECK(!dns_is_truncated(found) && found_size > 800);
    text_size = LONG;
    CHECK(look_up((enum dns_type)TXT, 1232) == DNS_OK);
    CHECK(dns_is_truncated(found) && servers[0].asked_by_stream == 1);
    CHECK(look_up((enum dns_type)TXT, 4096) == DNS_OK);
    CHECK(!dns_is_truncated(found) && found_size > LONG);
    CHECK(look_up(DNS_A, 1232) == DNS_OK && has_address());
    text_size = HUGE_TEXT;
    CHECK(look_up((enum dns_type)TXT, 65535) == DNS_OK);
    CHECK(dns_is_truncated(found));
    expect_no_line();
}

static void who_speaks_no_tcp_is_passed_over(void)
{
    BEGIN(SPEAKS_NO_TCP, ANSWERS);
    text_size = LONG;
    CHECK(look_up((enum dns_type)TXT, 4096) == DNS_OK);
    CHECK(found_size > LONG && servers[0].asked_by_stream == 1 && servers[1].asked_by_stream == 1);
}

/* Three queries in one go, in pieces that are not theirs; the answers come in order. */
static void queries_in_a_connection(void)
{
    struct message_connect m = {.address = {[10] = 0xff, 0xff, 8, 8, 8, 8}, .port = DNS_PORT};
    autobuf struct buf     b, q;
    uint8_t                message[DNS_MESSAGE_MAX];
    static const int       types[] = {TXT, DNS_A, TXT};

    BEGIN(ANSWERS);
    text_size = HUGE_TEXT;
    buf_init(&b, 32);
    buf_init(&q, 1000);
    message_pack_connect(&b, &m);
    for (int i = 0; i < 3; i++) {
        size_t size = dns_ask((uint16_t)i, "a.test", (enum dns_type)types[i], message);
        buf_add(&q, (uint8_t[]){0, (uint8_t)size}, 2);
        buf_add(&q, message, size);
    }
    send_frame(FRAME_CONNECT, last, 0, b.data, b.size);
    for (size_t at = 0; at < q.size; at += 7)
        send_frame(FRAME_DATA, last, STREAM_OUT, q.data + at, q.size - at < 7 ? q.size - at : 7);
    send_frame(FRAME_END, last, STREAM_OUT, NULL, 0);
    TURN_UNTIL(has_ended);
    CHECK(!was_reset && !egress_is_sending(egress));
    for (int i = 0; i < 3; i++) {
        size_t size = (size_t)stream.data[0] << 8 | stream.data[1];
        CHECK(stream.size >= 2 + size && stream.data[3] == i);
        CHECK(dns_code(stream.data + 2) == DNS_OK && !dns_is_truncated(stream.data + 2));
        CHECK(types[i] == TXT ? size > HUGE_TEXT : size < 100);
        buf_drop(&stream, 2 + size);
    }
    CHECK(stream.size == 0);
    expect_no_line();
}

static void nonsense_in_a_connection(void)
{
    struct message_connect m = {.address = {[10] = 0xff, 0xff, 8, 8, 8, 8}, .port = DNS_PORT};
    autobuf struct buf     b;

    BEGIN(ANSWERS);
    buf_init(&b, 32);
    message_pack_connect(&b, &m);
    send_frame(FRAME_CONNECT, last, 0, b.data, b.size);
    send_frame(FRAME_DATA, last, STREAM_OUT, "GET / HTTP/1.0\r\n", 16);
    TURN_UNTIL(was_reset);
    CHECK(servers[0].asked == 0);
}

#define TEST(name)                                                                                 \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        assert_int_equal(inside_run(name, SECONDS, NULL), 0);                                      \
    }
TEST(a_failure_is_not_final)
TEST(that_all_fail_is_said)
TEST(that_there_is_no_such_name_is_an_answer)
TEST(questions_for_one_name_are_asked_once)
TEST(silence_leads_to_the_next)
TEST(who_knows_no_edns_is_asked_without)
TEST(large_answers)
TEST(who_speaks_no_tcp_is_passed_over)
TEST(queries_in_a_connection)
TEST(nonsense_in_a_connection)
#undef TEST

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_failure_is_not_final),
        cmocka_unit_test(test_that_all_fail_is_said),
        cmocka_unit_test(test_that_there_is_no_such_name_is_an_answer),
        cmocka_unit_test(test_questions_for_one_name_are_asked_once),
        cmocka_unit_test(test_silence_leads_to_the_next),
        cmocka_unit_test(test_who_knows_no_edns_is_asked_without),
        cmocka_unit_test(test_large_answers),
        cmocka_unit_test(test_who_speaks_no_tcp_is_passed_over),
        cmocka_unit_test(test_queries_in_a_connection),
        cmocka_unit_test(test_nonsense_in_a_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
