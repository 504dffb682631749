#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "egress/names.h"

enum { MOST = 8192, FIRST = 256 };

static struct ip made_up(size_t number)
{
    return ip_from_v4(
        (uint8_t[]){198, (uint8_t)(18 + (number >> 16)), (uint8_t)(number >> 8), (uint8_t)number});
}

static void names_are_bounded_and_found_by_their_address(void **state)
{
    struct names *n = names_new();
    struct ip     address, again;
    char          name[32];

    (void)state;
    for (size_t i = 0; i < MOST; i++) {
        snprintf(name, sizeof name, "n%zu.example", i);
        assert_int_equal(names_take(n, name, &address), 0);
        assert_true(names_is_made_up(&address));
        assert_string_equal(names_find(n, &address), name);
    }
    assert_int_equal(names_take(n, "one.more", &address), -1);
    assert_int_equal(names_take(n, "n7.example", &again), 0); /* who has one keeps it */
    assert_string_equal(names_find(n, &again), "n7.example");
    names_free(n);
}

/* Code inside may connect to any of them. */
static void addresses_of_nobody_have_no_name(void **state)
{
    struct names *n = names_new();
    struct ip     address;

    (void)state;
    assert_int_equal(names_take(n, "a.example", &address), 0);
    for (size_t number = 0; number < 1 << 17; number++) {
        struct ip at = made_up(number);
        assert_true(names_is_made_up(&at));
        if (number == FIRST)
            assert_string_equal(names_find(n, &at), "a.example");
        else
            assert_null(names_find(n, &at));
    }
    address = ip_from_v4((uint8_t[]){198, 17, 1, 0});
    assert_null(names_find(n, &address));
    address = ip_from_v4((uint8_t[]){198, 20, 1, 0});
    assert_null(names_find(n, &address));
    names_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_bounded_and_found_by_their_address),
        cmocka_unit_test(addresses_of_nobody_have_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
