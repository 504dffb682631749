#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "base/fd.h"

/* RFC 4648, section 10. */
static void knows_the_vectors(void **state)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xfb\xff\xfe", "+//+"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t            size = 99;
        autofree char    *text = base64_encode(rows[i][0], strlen(rows[i][0]));
        autofree uint8_t *data = base64_decode(rows[i][1], strlen(rows[i][1]), &size);
        assert_string_equal(text, rows[i][1]);
        assert_non_null(data);
        assert_int_equal(size, strlen(rows[i][0]));
        assert_memory_equal(data, rows[i][0], size);
    }
}

static void comes_back_at_any_length(void **state)
{
    uint8_t bytes[600];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 151 + i / 7);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        size_t            size;
        autofree char    *text = base64_encode(bytes, n);
        autofree uint8_t *data = base64_decode(text, strlen(text), &size);
        assert_int_equal(strlen(text), (n + 2) / 3 * 4);
        assert_non_null(data);
        assert_int_equal(size, n);
        assert_memory_equal(data, bytes, n);
    }
}

static void refuses(void **state)
{
    static const char *const bad[] = {
        "Z",     "Zg",    "Zg=",  "Zm8",    "Zm9vY", /* missing padding */
        "=",     "==",    "===",  "====",   "Z===",       "Zm9v====",     "Zg==Zg==", /* much */
        "Zm9v=", "Z=g=",  "=Zg=", "Zg=v",   "Zg==Zm9v",   "Zm8=Zm9v", /* misplaced */
        "Zh==",  "Zn==",  "Zm9=", "Zm+=",                             /* bits too many */
        "Zm9-",  "Zm9_",  "Zm9!", "Zm9.",   "Zm\xc3\xa4", "Zm9\xff",  /* other letters */
        " Zm9v", "Zm9v ", "Zm 9", "Zm9v\n", "Zm9\n",      "Zm9v\r\n\r\n", "\tZm9",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t size;
        if (base64_decode(bad[i], strlen(bad[i]), &size))
            fail_msg("'%s' is taken", bad[i]);
    }
}

/* Every byte but the 64 is refused at each place of a group, NUL too, and '=' but at the end. */
static void has_one_alphabet(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++)
        for (size_t at = 0; at < 4; at++) {
            char   text[] = "AAAAAAAA";
            size_t size;
            text[at] = (char)c;
            autofree uint8_t *data = base64_decode(text, 8, &size);
            bool              is_digit = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                            (c >= 'a' && c <= 'z') || c == '+' || c == '/';
            if (!!data != is_digit)
                fail_msg("byte %d at %zu", c, at);
        }
}

/* One text, one value: what is taken is what encoding makes. */
static void is_canonical(void **state)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int               taken = 0;

    (void)state;
    for (size_t i = 0; i < 64; i++)
        for (size_t k = 0; k < 64; k++) {
            char              two[] = {digits[i], digits[k], '=', '=', '\0'};
            size_t            size;
            autofree uint8_t *data = base64_decode(two, 4, &size);
            if (!data)
                continue;
            autofree char *again = base64_encode(data, size);
            assert_string_equal(again, two);
            taken++;
        }
    assert_int_equal(taken, 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_vectors), cmocka_unit_test(comes_back_at_any_length),
        cmocka_unit_test(refuses),           cmocka_unit_test(has_one_alphabet),
        cmocka_unit_test(is_canonical),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
