#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "egress/gates.h"
#include "egress/policy.h"

static const char *const registries[] = {"https://registry.example/", "http://10.1.2.3:4873/npm/",
                                         "https://user@npm.example:8443/x", NULL};

static struct policy *make(const char *kind, const char *const *rules)
{
    struct err     e = {0};
    struct policy *p = policy_new(kind, rules, registries, &e);

    if (!p)
        fail_msg("%s", e.msg);
    return p;
}

static bool to_address(const struct policy *p, const char *text, uint16_t port)
{
    struct ip a;

    assert_int_equal(ip_parse(text, &a), 0);
    return policy_allows_address_at(p, &a, port);
}

static void test_kinds(void **state)
{
    struct policy *none = make("none", NULL), *npm = make("npm", NULL),
                  *internet = make("internet", NULL);

    (void)state;
    assert_false(policy_allows_name(none, "registry.example"));
    assert_false(to_address(none, "1.1.1.1", 443));

    assert_true(policy_allows_name(npm, "registry.example"));
    assert_true(policy_allows_name_at(npm, "registry.example", 443));
    assert_false(policy_allows_name_at(npm, "registry.example", 80));
    assert_true(policy_allows_name_at(npm, "npm.example", 8443));
    assert_false(policy_allows_name_at(npm, "npm.example", 443));
    assert_true(to_address(npm, "10.1.2.3", 4873));
    assert_false(to_address(npm, "10.1.2.3", 80));
    assert_false(policy_allows_name(npm, "example"));
    assert_false(policy_allows_name(npm, "x.registry.example"));

    assert_true(policy_allows_name_at(internet, "anything.test", 1));
    assert_true(to_address(internet, "1.1.1.1", 65535));
    assert_false(to_address(internet, "1.1.1.1", 0));

    assert_true(policy_exempts(none, "registry.example", 443));
    assert_false(policy_exempts(none, "registry.example", 444));
    assert_true(policy_exempts(none, "registry.example", 0));
    assert_true(policy_exempts(none, "10.1.2.3", 4873));
    assert_false(policy_exempts(none, "other.example", 443));
    policy_free(none);
    policy_free(npm);
    policy_free(internet);
}

static void test_rules(void **state)
{
    static const char *const rules[] = {"Example.com",
                                        "*.below.test:443",
                                        "ranged.test:8000-8002",
                                        "93.184.0.0/16",
                                        "1.1.1.1:53",
                                        "[2606:4700::]/32:443",
                                        "[2a00::1]",
                                        NULL};
    struct policy           *p = make("allow", rules);

    (void)state;
    assert_true(policy_allows_name_at(p, "example.com", 80));
    assert_false(policy_allows_name_at(p, "www.example.com", 80));
    assert_false(policy_allows_name_at(p, "example.com.evil.test", 80));
    assert_false(policy_allows_name_at(p, "notexample.com", 80));
    assert_true(policy_allows_name_at(p, "a.below.test", 443));
    assert_true(policy_allows_name_at(p, "a.b.below.test", 443));
    assert_false(policy_allows_name_at(p, "below.test", 443));
    assert_false(policy_allows_name_at(p, "xbelow.test", 443));
    assert_false(policy_allows_name_at(p, "a.below.test", 80));
    assert_true(policy_allows_name_at(p, "ranged.test", 8000));
    assert_true(policy_allows_name_at(p, "ranged.test", 8002));
    assert_false(policy_allows_name_at(p, "ranged.test", 8003));
    assert_true(to_address(p, "93.184.216.34", 1));
    assert_false(to_address(p, "93.185.0.0", 1));
    assert_true(to_address(p, "1.1.1.1", 53));
    assert_false(to_address(p, "1.1.1.1", 54));
    assert_true(to_address(p, "2606:4700::1", 443));
    assert_false(to_address(p, "2606:4701::1", 443));
    assert_true(to_address(p, "2a00::1", 9));
    assert_false(to_address(p, "2a00::2", 9));
    /* A name is not allowed by an address rule, nor the other way round. */
    assert_false(policy_allows_name_at(p, "1.1.1.1", 53));
    policy_free(p);
}

static void test_a_rule_is_of_one_family(void **state)
{
    struct policy *six = make("allow", (const char *[]){"[::]/0", NULL}),
                  *four = make("allow", (const char *[]){"0.0.0.0/0", NULL});

    (void)state;
    assert_true(to_address(six, "2606:4700::1", 443));
    assert_false(to_address(six, "1.1.1.1", 443));
    assert_true(to_address(four, "1.1.1.1", 443));
    assert_false(to_address(four, "2606:4700::1", 443));
    policy_free(six);
    policy_free(four);
}

static void test_rules_beside_none_and_npm(void **state)
{
    const char *const rules[] = {"more.example:443", NULL};
    struct policy    *none = make("none", rules), *npm = make("npm", rules);

    (void)state;
    assert_string_equal(policy_name(none), "allow");
    assert_true(policy_allows_name_at(none, "more.example", 443));
    assert_false(policy_allows_name_at(none, "registry.example", 443));
    assert_true(policy_allows_name_at(npm, "more.example", 443));
    assert_true(policy_allows_name_at(npm, "registry.example", 443));
    assert_false(policy_allows_name_at(npm, "more.example", 80));
    policy_free(none);
    policy_free(npm);
}

static void test_host_is_the_operators_alone(void **state)
{
    static const char *const kinds[] = {"none", "npm", "allow", "internet", "host"};
    struct policy           *host = make("host", NULL);

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct policy *other = make(kinds[i], NULL);
        struct err     e = {0};
        bool           is_host = policy_kind(other) == POLICY_HOST;

        assert_int_equal(policy_check_within(host, other, &e), is_host ? 0 : -1);
        assert_int_equal(e.kind, is_host ? ERR_NONE : ERR_INVALID);
        assert_int_equal(policy_check_within(other, host, NULL), 0);
        policy_free(other);
    }
    policy_free(host);
}

/* Each pair of policies allows what both allow, whichever is the operator's; the exemption of
 * registries is the operator's alone. */
static void test_two_policies_are_never_wider_than_one(void **state)
{
    static const struct {
        const char *kind, *rules[3];
    } list[] = {
        {"none", {NULL}},
        {"npm", {NULL}},
        {"allow", {"*.example:443", "93.184.0.0/16", NULL}},
        {"allow", {"a.example", "registry.example:80-500", NULL}},
        {"internet", {NULL}},
    };
    enum { KINDS = sizeof list / sizeof *list };
    static const char *const names[] = {"a.example", "b.example", "registry.example", "other.test"},
                             *const texts[] = {"93.184.216.34", "1.1.1.1", "10.1.2.3"};
    static const uint16_t           ports[] = {80, 443, 4873};
    struct policy                  *all[KINDS];
    struct ip                       address;

    (void)state;
    for (size_t i = 0; i < KINDS; i++)
        all[i] = make(list[i].kind, (const char *const *)list[i].rules);
    for (size_t i = 0; i < KINDS * KINDS; i++) {
        const struct policy *one = all[i / KINDS], *two = all[i % KINDS];
        struct gates         g = {one, two}, alone = {one, NULL};

        for (size_t k = 0; k < 3; k++) {
            for (size_t n = 0; n < 4; n++) {
                bool both = policy_allows_name_at(one, names[n], ports[k]) &&
                            policy_allows_name_at(two, names[n], ports[k]);
                assert_int_equal(!gates_object(&g, names[n], NULL, ports[k]), both);
                assert_true(!both || !gates_object_to_lookup(&g, names[n])); /* it can be found */
                assert_true(!both || !gates_object(&alone, names[n], NULL, ports[k]));
            }
            for (size_t n = 0; n < 3; n++) {
                bool both =
                    to_address(one, texts[n], ports[k]) && to_address(two, texts[n], ports[k]);
                ip_parse(texts[n], &address);
                assert_int_equal(!gates_object(&g, NULL, &address, ports[k]), both);
            }
        }
    }
    for (size_t i = 0; i < KINDS; i++) {
        struct gates alone = {all[i], NULL};
        assert_ptr_equal(gates_object(&alone, "registry.example", NULL, 0), all[i]);
        assert_ptr_equal(gates_object(&alone, NULL, &address, 0), all[i]);
        policy_free(all[i]);
    }
}

static void test_registries_of_a_sandboxs_own_policy_are_not_exempt(void **state)
{
    struct policy *operator_policy = policy_new("internet", NULL, NULL, NULL),
                  *own = make("npm", NULL);
    struct gates g = {operator_policy, own};
    struct ip    address;

    (void)state;
    ip_parse("10.1.2.3", &address);
    assert_null(gates_object(&g, NULL, &address, 4873)); /* both allow it, and yet */
    assert_string_equal(gates_special(&g, "10.1.2.3", 4873, &address), "private");
    g.operator_policy = own;
    assert_null(gates_special(&g, "10.1.2.3", 4873, &address));
    policy_free(operator_policy);
    policy_free(own);
}

static void test_bad_rules(void **state)
{
    static const char *const bad[] = {
        "",          "*",      "a..b",     ".a",       "a.",  "a b",
        "a:",        "a:0",    "a:65536",  "a:80-79",  "a:x", "1.2.3.0/33",
        "1.2.3/8",   "[::1",   "[::1]x",   "[::]/129", "a/8", "*.1.2.3.4/8",
        "http://a/", "10.0.0", "[a.test]", "a:80:90",  "*.",  "a*.test",
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *rules[] = {bad[i], NULL};
        e = (struct err){0};
        assert_null(policy_new("allow", rules, NULL, &e));
        assert_int_equal(e.kind, ERR_INVALID);
    }
    assert_null(policy_new("all", NULL, NULL, &e));
    assert_null(policy_new("internet", (const char *[]){"a.test", NULL}, NULL, &e));
    assert_null(policy_new("npm", NULL, (const char *[]){"ftp://a.test/", NULL}, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_a_rule_is_of_one_family),
        cmocka_unit_test(test_rules_beside_none_and_npm),
        cmocka_unit_test(test_host_is_the_operators_alone),
        cmocka_unit_test(test_two_policies_are_never_wider_than_one),
        cmocka_unit_test(test_registries_of_a_sandboxs_own_policy_are_not_exempt),
        cmocka_unit_test(test_bad_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
