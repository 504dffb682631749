#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/str.h"
#include "npm/document.h"

#define BAD "\xef\xbf\xbd"

/* The member "a" of what a text is. */
static void test_as_npm_reads_it(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"{\"a\":\"b\"}", "b"},
        {"\xef\xbb\xbf{\"a\":\"b\"}", "b"},
        {"{\"a\":\"b\",\"a\":\"c\"}", "c"},
        {"{\"a\":\"cut \\ud83d\"}", "cut " BAD},
        {"{\"a\":\"\\uDC00\\ud83dx\"}", BAD BAD "x"},
        {"{\"a\":\"\\ud83d\\ud83d\\ude00\"}", BAD "\xf0\x9f\x98\x80"},
        {"{\"a\":\"\\ud83d\\u0041\"}", BAD "A"},
        {"{\"a\":\"\\\\ud83d\\\\u0000\"}", "\\ud83d\\u0000"}, /* no escapes */
        {"{\"a\":\"\\\"\\ud83d\"}", "\"" BAD},
        {"{\"a\":\"x\\u0000y\"}", "x" BAD "y"},
        {"{\"a\":\"caf\xe9\"}", "caf" BAD},
        {"{\"a\":\"b\",\"n\":123456789012345678901234567890}", "b"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autofree char   *text = str_dup(rows[i].text);
        struct err       e = {0};
        autojson json_t *j = document_parse(text, strlen(text), &e);
        if (!j)
            fail_msg("%s: %s", rows[i].text, e.msg);
        assert_string_equal(json_string_value(json_object_get(j, "a")), rows[i].expected);
    }
}

static void test_not_json(void **state)
{
    static const char *const rows[] = {"",        "{",        "<html>",      "{\"a\":\"\\ud8",
                                       "\"\\u00", "\"\\u00x", "\"\\ud83d\\", "{} {}",
                                       "\"\\",    "\\ud83d",  "\xef\xbb\xbf"};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autofree char *text = str_dup(rows[i]);
        struct err     e = {0};
        assert_null(document_parse(text, strlen(text), &e));
        assert_string_equal(e.msg, "the registry's answer is not JSON");
    }
}

/* "[{},{},...]" of so many bytes. */
static char *repeat(const char *piece, size_t size)
{
    char  *text = malloc(size + 1);
    size_t n = strlen(piece);

    if (!text)
        abort();
    for (size_t i = 0; i < size; i++)
        text[i] = piece[i % n];
    text[0] = '[';
    text[size - 1] = ']';
    text[size] = '\0';
    return text;
}

/* Of 30 MB: what is small on the wire and large in memory is refused before it is parsed. */
static void test_too_many_values(void **state)
{
    static const char *const pieces[] = {"{},", "1,", "[],", "{\"\":0},", "[["};
    static const size_t      size = 30 << 20;

    (void)state;
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        autofree char *text = repeat(pieces[i], size);
        struct err     e = {0};
        assert_null(document_parse(text, size, &e));
        assert_string_equal(e.msg, "the registry's answer has too many values");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_npm_reads_it),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_too_many_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
