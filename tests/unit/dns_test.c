#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "egress/dns.h"
#include "egress/names.h"

static uint8_t message[DNS_MESSAGE_MAX], reply[DNS_MESSAGE_MAX];

static void test_a_question_goes_round(void **state)
{
    size_t           size = dns_ask(0xabcd, "www.example.com", DNS_A, message);
    struct dns_query q;

    (void)state;
    assert_int_equal(dns_parse_query(message, size, &q), 0);
    assert_string_equal(q.name, "www.example.com");
    assert_int_equal(q.type, DNS_A);
    assert_int_equal(q.question_end, size);
    message[13] = 'W';
    assert_int_equal(dns_parse_query(message, size, &q), 0);
    assert_string_equal(q.name, "www.example.com");
    for (size_t cut = 0; cut < size; cut++)
        assert_int_equal(dns_parse_query(message, cut, &q), -1);
}

static void test_questions_that_are_refused(void **state)
{
    size_t           size = dns_ask(1, "a.test", DNS_A, message);
    struct dns_query q;
    static const struct {
        size_t  at;
        uint8_t value;
    } changes[] = {
        {2, 0x81},  /* an answer */
        {2, 0x11},  /* another opcode */
        {5, 2},     /* two questions */
        {5, 0},     /* none */
        {12, 64},   /* a label too long, or a pointer */
        {12, 0xc0}, /* a pointer */
        {13, '.'},  /* a dot within a label */
        {13, 0},    /* a NUL */
        {13, 0xe4}, /* beyond ASCII */
        {12, 0},    /* the root */
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        uint8_t before = message[changes[i].at];
        message[changes[i].at] = changes[i].value;
        assert_int_equal(dns_parse_query(message, size, &q), -1);
        message[changes[i].at] = before;
    }
    message[size - 1] = 3; /* class CHAOS */
    assert_int_equal(dns_parse_query(message, size, &q), -1);
}

static void test_the_longest_name(void **state)
{
    char             name[260];
    struct dns_query q;
    size_t           size;

    (void)state;
    memset(name, 'a', sizeof name);
    for (size_t i = 63; i < 253; i += 64)
        name[i] = '.';
    name[253] = '\0';
    size = dns_ask(1, name, DNS_A, message);
    assert_int_equal(dns_parse_query(message, size, &q), 0);
    assert_string_equal(q.name, name);
    strcpy(name + 253, "a");
    size = dns_ask(1, name, DNS_A, message);
    assert_int_equal(dns_parse_query(message, size, &q), -1);
}

static void test_an_answer_is_read_back(void **state)
{
    size_t               asked = dns_ask(0x1234, "a.test", DNS_A, message), size;
    struct dns_query     q;
    struct dns_addresses got;
    struct ip            address;

    (void)state;
    dns_parse_query(message, asked, &q);
    ip_parse("198.18.1.2", &address);
    size = dns_answer(message, &q, DNS_OK, &address, reply);
    assert_true(dns_fits(message, asked, reply, size));
    assert_int_equal(dns_read_addresses(reply, size, DNS_A, &got), 0);
    assert_int_equal(got.n, 1);
    assert_memory_equal(&got.list[0], &address, sizeof address);
    assert_int_equal(dns_read_addresses(reply, size, DNS_AAAA, &got), 0);
    assert_int_equal(got.n, 0);
    for (size_t cut = 12; cut < size; cut++)
        if (dns_read_addresses(reply, cut, DNS_A, &got) == 0)
            assert_int_equal(got.n, 0);

    reply[0] ^= 1;
    assert_false(dns_fits(message, asked, reply, size)); /* another id */
    reply[0] ^= 1;
    reply[13] = 'b';
    assert_false(dns_fits(message, asked, reply, size)); /* another name */

    size = dns_answer(message, &q, DNS_NO_SUCH_NAME, NULL, reply);
    assert_int_equal(dns_read_addresses(reply, size, DNS_A, &got), 0);
    assert_int_equal(got.code, DNS_NO_SUCH_NAME);
    assert_int_equal(got.n, 0);
}

static void test_what_is_no_question_gets_a_refusal_or_nothing(void **state)
{
    (void)state;
    memset(message, 0, 12);
    assert_int_equal(dns_answer_bad(message, 12, reply), 12);
    assert_int_equal(reply[3] & 15, DNS_REFUSED);
    message[2] = 0x80; /* an answer: answering it would never end */
    assert_int_equal(dns_answer_bad(message, 12, reply), 0);
    assert_int_equal(dns_answer_bad(message, 11, reply), 0);
}

static void test_what_who_asks_can_take(void **state)
{
    static const struct {
        size_t says, most;
    } list[] = {{0, 512}, {100, 512}, {512, 512}, {1232, 1232}, {4096, 4096}, {65535, 4096}};
    struct dns_query q;

    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        size_t size = dns_ask(1, "a.test", DNS_A, message), end = size;
        if (list[i].says > 0)
            size = dns_add_edns(message, size, list[i].says);
        assert_int_equal(dns_parse_query(message, size, &q), 0);
        assert_int_equal(q.has_edns, list[i].says > 0);
        assert_int_equal(q.most, list[i].most);
        assert_int_equal(q.question_end, end);
        if (list[i].says > 0) { /* cut short it says nothing, but still asks */
            assert_int_equal(dns_parse_query(message, size - 1, &q), 0);
            assert_false(q.has_edns);
        }
    }
}

static void test_an_answer_is_fitted(void **state)
{
    struct dns_query q;
    struct ip        address;
    size_t           asked = dns_ask(7, "a.test", DNS_A, message), size, fitted;

    (void)state;
    ip_parse("198.18.1.2", &address);
    assert_int_equal(dns_parse_query(message, asked, &q), 0);
    size = dns_answer(message, &q, DNS_OK, &address, reply);
    assert_int_equal(dns_fit(reply, size, &q, size), size);
    assert_false(dns_is_truncated(reply));
    fitted = dns_fit(reply, size, &q, size - 1);
    assert_int_equal(fitted, asked);
    assert_true(dns_is_truncated(reply));
    assert_int_equal(reply[7], 0);
    assert_true(dns_fits(message, asked, reply, fitted));

    asked = dns_add_edns(message, asked, 1232);
    assert_int_equal(dns_parse_query(message, asked, &q), 0);
    size = dns_answer(message, &q, DNS_OK, &address, reply);
    assert_int_equal(dns_fit(reply, size, &q, 512), size + DNS_EDNS);
    assert_int_equal(reply[11], 1);
    /* and what is not asked for goes again */
    assert_int_equal(dns_drop_additional(reply, size + DNS_EDNS), size);
    assert_int_equal(reply[11], 0);
    assert_int_equal(dns_drop_additional(reply, size - 1), 0);
}

static void test_names(void **state)
{
    struct names *n = names_new();
    struct ip     a, b, again, other;
    char          name[24];
    int           taken = 2;

    (void)state;
    assert_int_equal(names_take(n, "a.test", &a), 0);
    assert_int_equal(names_take(n, "b.test", &b), 0);
    assert_int_equal(names_take(n, "a.test", &again), 0);
    assert_memory_equal(&a, &again, sizeof a);
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_string_equal(names_find(n, &b), "b.test");
    assert_true(names_is_made_up(&a));
    ip_parse("198.18.0.2", &other);
    assert_null(names_find(n, &other));
    ip_parse("198.19.255.255", &other);
    assert_null(names_find(n, &other));
    ip_parse("198.20.1.0", &other);
    assert_false(names_is_made_up(&other));
    assert_null(names_find(n, &other));
    do
        snprintf(name, sizeof name, "n%d.test", taken++);
    while (names_take(n, name, &other) == 0);
    assert_int_equal(taken - 1, 8192);
    assert_int_equal(names_take(n, "a.test", &again), 0);
    names_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_question_goes_round),
        cmocka_unit_test(test_questions_that_are_refused),
        cmocka_unit_test(test_the_longest_name),
        cmocka_unit_test(test_an_answer_is_read_back),
        cmocka_unit_test(test_what_is_no_question_gets_a_refusal_or_nothing),
        cmocka_unit_test(test_what_who_asks_can_take),
        cmocka_unit_test(test_an_answer_is_fitted),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
