#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "egress/ip.h"

static const char *special(const char *text)
{
    struct ip a;

    assert_int_equal(ip_parse(text, &a), 0);
    return ip_special(&a);
}

static void test_public(void **state)
{
    static const char *const list[] = {
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "168.63.129.15",
        "2606:4700:4700::1111",
        "2a00:1450::1",
        "2001:4860::8888",
        "64:ff9b::1.1.1.1",
        "2002:101:101::1",
        "::ffff:1.1.1.1",
        NULL,
    };

    (void)state;
    for (const char *const *text = list; *text; text++)
        assert_null(special(*text));
}

static void test_not_public(void **state)
{
    static const struct {
        const char *text, *what;
    } list[] = {
        {"0.0.0.0", "reserved"},
        {"10.0.0.0", "private"},
        {"10.255.255.255", "private"},
        {"100.64.0.0", "private"},
        {"100.127.255.255", "private"},
        {"127.0.0.1", "loopback"},
        {"127.255.255.255", "loopback"},
        {"169.254.169.254", "link-local"},
        {"172.16.0.0", "private"},
        {"172.31.255.255", "private"},
        {"192.168.0.1", "private"},
        {"192.0.0.192", "reserved"},
        {"198.18.0.0", "reserved"},
        {"198.19.255.255", "reserved"},
        {"224.0.0.1", "multicast"},
        {"240.0.0.1", "reserved"},
        {"255.255.255.255", "reserved"},
        {"168.63.129.16", "metadata"},
        {"::", "reserved"},
        {"::1", "loopback"},
        {"::127.0.0.1", "reserved"},
        {"::ffff:127.0.0.1", "loopback"},
        {"::ffff:10.1.2.3", "private"},
        {"::ffff:0:127.0.0.1", "reserved"},
        {"64:ff9b::127.0.0.1", "loopback"},
        {"64:ff9b::a9fe:a9fe", "link-local"},
        {"64:ff9b:1::1.1.1.1", "reserved"},
        {"2002:7f00:1::1", "loopback"},
        {"2002:c0a8:1::1", "private"},
        {"2001::1", "reserved"},
        {"2001:db8::1", "reserved"},
        {"3fff::1", "reserved"},
        {"fc00::1", "private"},
        {"fd00:ec2::254", "private"},
        {"fe80::1", "link-local"},
        {"fec0::1", "private"},
        {"ff02::1", "multicast"},
        {"100::1", "reserved"},
        {"5f00::1", "reserved"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        assert_non_null(special(list[i].text));
        assert_string_equal(special(list[i].text), list[i].what);
    }
}

static void test_one_spelling(void **state)
{
    static const char *const list[] = {"127.1",      "0177.0.0.1", "2130706433", "0x7f000001",
                                       "1.2.3",      "1.2.3.4.5",  "1.2.3.256",  "[::1]",
                                       "fe80::1%lo", "",           " 1.1.1.1",   NULL};
    struct ip                a;

    (void)state;
    for (const char *const *text = list; *text; text++)
        assert_int_equal(ip_parse(*text, &a), -1);
}

static void test_text(void **state)
{
    static const char *const list[] = {"1.2.3.4", "2606:4700::1", "::1", NULL};
    char                     text[IP_TEXT];
    struct ip                a;

    (void)state;
    for (const char *const *want = list; *want; want++) {
        assert_int_equal(ip_parse(*want, &a), 0);
        ip_format(&a, text);
        assert_string_equal(text, *want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_not_public),
        cmocka_unit_test(test_one_spelling),
        cmocka_unit_test(test_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
