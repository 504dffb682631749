#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void ids_are_hexadecimal(void **state)
{
    char before[33] = "";

    (void)state;
    for (int i = 0; i < 100; i++) {
        char id[33];
        random_id(id);
        assert_int_equal(strlen(id), 32);
        assert_int_equal(strspn(id, "0123456789abcdef"), 32);
        assert_string_not_equal(id, before);
        memcpy(before, id, sizeof id);
    }
}

/* Every byte is written, and none behind them: in a thousand rounds each place has had a bit of
 * each value, or it was never touched. */
static void fills_what_it_was_given(void **state)
{
    uint8_t bytes[300], any[300] = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        memset(bytes, 0, sizeof bytes);
        random_bytes(bytes, 299);
        for (size_t k = 0; k < sizeof bytes; k++)
            any[k] |= bytes[k];
    }
    for (size_t k = 0; k < 299; k++)
        assert_int_equal(any[k], 255);
    assert_int_equal(any[299], 0);
    random_bytes(bytes, 0);
}

static void ids_spread_over_buckets(void **state)
{
    size_t n[8] = {0};
    char   id[33];

    (void)state;
    for (int i = 0; i < 8000; i++) {
        random_id(id);
        n[random_id_bucket(id, 8)]++;
    }
    for (size_t i = 0; i < 8; i++)
        assert_in_range(n[i], 700, 1300);
    assert_int_equal(random_id_bucket("", 8), 0);
    assert_int_equal(random_id_bucket("none of ours", 8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_hexadecimal),
        cmocka_unit_test(fills_what_it_was_given),
        cmocka_unit_test(ids_spread_over_buckets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
