#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/utf8.h"

#define U(text) ((const uint8_t *)(text))

/* Every two bytes, and the borders of three and four, against the table of RFC 3629. */
static void characters_are_those_of_the_rfc(void **state)
{
    static const struct {
        const char *bytes;
        size_t      size;
    } cases[] = {
        {"\xe0\xa0\x80", 3},     {"\xe0\x9f\xbf", 0},     {"\xed\x9f\xbf", 3},
        {"\xed\xa0\x80", 0},     {"\xee\x80\x80", 3},     {"\xef\xbf\xbf", 3},
        {"\xf0\x90\x80\x80", 4}, {"\xf0\x8f\xbf\xbf", 0}, {"\xf4\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 0}, {"\xf5\x80\x80\x80", 0}, {"\xe2\x82", 0},
        {"\xe2\x82.", 0},        {"\xf0\x9f\x98", 0},     {"\x80", 0},
    };

    (void)state;
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            uint8_t two[] = {(uint8_t)a, (uint8_t)b};
            size_t  want = a < 0x80 ? 1 : a >= 0xc2 && a <= 0xdf && b >= 0x80 && b <= 0xbf ? 2 : 0;
            assert_int_equal(utf8_size(two, 2), want);
        }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(utf8_size(U(cases[i].bytes), strlen(cases[i].bytes)), cases[i].size);
    assert_int_equal(utf8_size(U(""), 0), 0);
    assert_true(utf8_is_valid(U("a\0\xc3\xa4"), 4));
    assert_false(utf8_is_valid(U("a\xc3"), 2));
}

/* Wherever a text is cut, both pieces are whole characters. */
static void cuts_fall_between_characters(void **state)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
    const size_t      size = sizeof text - 1;

    (void)state;
    for (size_t at = 0; at <= size; at++) {
        size_t end = utf8_cut_end(U(text), at), front = utf8_cut_front(U(text) + at, size - at);
        assert_true(utf8_is_valid(U(text), at - end));
        assert_true(utf8_is_valid(U(text) + at + front, size - at - front));
        assert_int_equal(end == 0, utf8_is_valid(U(text), at));
        assert_int_equal(front == 0, end == 0);
    }
}

static void what_is_no_character_is_not_cut_off(void **state)
{
    (void)state;
    assert_int_equal(utf8_cut_end(U("a\xff"), 2), 0);
    assert_int_equal(utf8_cut_end(U("\x80\x80\x80\x80"), 4), 0);
    assert_int_equal(utf8_cut_end(U("\xc3\xa4\x80"), 3), 0); /* one too many */
    assert_int_equal(utf8_cut_front(U("\x80\x80\x80\x80"), 4), 0);
    assert_int_equal(utf8_cut_front(U("\xff"), 1), 0);
    assert_int_equal(utf8_cut_front(U("\x80"), 1), 1);
}

static void mends_byte_by_byte(void **state)
{
    autobuf struct buf b;

    (void)state;
    buf_init(&b, 64);
    assert_int_equal(utf8_mend(U("a\xff\xc3\xa4\xe2\x82!\0z"), 9, &b), 3);
    assert_int_equal(b.size, 1 + 3 + 2 + 6 + 3);
    assert_memory_equal(b.data, "a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd!\0z", b.size);
}

static void counts_what_a_person_sees(void **state)
{
    static const char   text[] = "a\xc3\xa4\xe2\x82\xac\xff\xe2\x82z\xc3";
    static const size_t ends[] = {0, 1, 3, 6, 7, 8, 9, 10, 11, 11};

    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        assert_int_equal(utf8_first(U(text), sizeof text - 1, i), ends[i]);
    assert_int_equal(utf8_first(NULL, 0, 9), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_those_of_the_rfc),
        cmocka_unit_test(cuts_fall_between_characters),
        cmocka_unit_test(what_is_no_character_is_not_cut_off),
        cmocka_unit_test(mends_byte_by_byte),
        cmocka_unit_test(counts_what_a_person_sees),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
