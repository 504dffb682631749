#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

static void grows_up_to_its_maximum(void **state)
{
    autobuf struct buf b;
    char               bytes[1000];

    (void)state;
    memset(bytes, 'x', sizeof bytes);
    buf_init(&b, sizeof bytes);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(buf_add(&b, bytes, 100), 0);
    assert_int_equal(b.size, b.max);
    assert_true(b.room <= b.max);
    assert_memory_equal(b.data, bytes, sizeof bytes);
}

static void refuses_what_would_pass_it(void **state)
{
    static const struct {
        size_t used, more;
        int    result;
    } cases[] = {{0, 8, 0}, {0, 0, 0},  {8, 0, 0},  {0, 9, -1},
                 {5, 3, 0}, {5, 4, -1}, {8, 1, -1}, {8, SIZE_MAX, -1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autobuf struct buf b;

        buf_init(&b, 8);
        if (cases[i].used)
            assert_int_equal(buf_add(&b, "12345678", cases[i].used), 0);
        assert_int_equal(buf_add(&b, "abcdefghi", cases[i].more), cases[i].result);
        assert_int_equal(b.size, cases[i].used + (cases[i].result ? 0 : cases[i].more));
        assert_memory_equal(b.size ? (void *)b.data : "", "12345678", cases[i].used);
    }
}

static void reserve_gives_room_and_no_size(void **state)
{
    autobuf struct buf b;
    uint8_t           *to;

    (void)state;
    buf_init(&b, 4096);
    buf_add(&b, "ab", 2);
    to = buf_reserve(&b, 4094);
    assert_non_null(to);
    assert_ptr_equal(to, b.data + 2);
    memset(to, 0, 4094); /* ASan looks */
    assert_int_equal(b.size, 2);
    assert_null(buf_reserve(&b, 4095));
}

static void drop_forgets_the_beginning(void **state)
{
    autobuf struct buf b;

    (void)state;
    buf_init(&b, 8);
    buf_add(&b, "abcdef", 6);
    buf_drop(&b, 0);
    assert_int_equal(b.size, 6);
    buf_drop(&b, 2);
    assert_int_equal(b.size, 4);
    assert_memory_equal(b.data, "cdef", 4);
    assert_int_equal(buf_add(&b, "ghij", 4), 0);
    assert_memory_equal(b.data, "cdefghij", 8);
    buf_drop(&b, 8);
    assert_int_equal(b.size, 0);
}

static void printf_needs_room_for_its_end(void **state)
{
    autobuf struct buf b;

    (void)state;
    buf_init(&b, 8);
    assert_int_equal(buf_printf(&b, "%d-%s", 12, "ab"), 0);
    assert_int_equal(b.size, 5);
    assert_int_equal(buf_printf(&b, "%s", "xyz"), -1);
    assert_string_equal(buf_text(&b), "12-ab");
    assert_int_equal(buf_printf(&b, "%s", "xy"), 0);
    assert_string_equal(buf_text(&b), "12-abxy");
    assert_int_equal(buf_add(&b, "z", 1), 0);
    assert_null(buf_text(&b));
}

static void text_of_nothing_is_empty(void **state)
{
    autobuf struct buf b;

    (void)state;
    buf_init(&b, 1);
    assert_string_equal(buf_text(&b), "");
    assert_int_equal(b.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_up_to_its_maximum),
        cmocka_unit_test(refuses_what_would_pass_it),
        cmocka_unit_test(reserve_gives_room_and_no_size),
        cmocka_unit_test(drop_forgets_the_beginning),
        cmocka_unit_test(printf_needs_room_for_its_end),
        cmocka_unit_test(text_of_nothing_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
