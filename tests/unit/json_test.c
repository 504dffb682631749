#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void tells_what_is_json(void **state)
{
    static const struct {
        const char *text;
        bool        is_json;
        const char *says;
    } rows[] = {
        {"{", false, "not JSON at line 1"},
        {"", false, "not JSON"},
        {"[1] 2", false, "not JSON"},
        {"[\n\n01]", false, "at line 3"},
        {"[NaN]", false, "not JSON"},
        {"\"\xc3\x28\"", false, "not JSON"},
        {"{\"a\":1,\"a\":2}", true, "duplicate"},
        {"[12345678901234567890]", true, "refused"},
        {"[-12345678901234567890]", true, "refused"},
        {"[1e400]", true, "refused"},
        {"[\"\\u0000\"]", true, "refused"},
        {"{\"\\u0000\":1}", true, "refused"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool       is_json = !rows[i].is_json;
        struct err e = {0};
        assert_null(json_parse_told(rows[i].text, strlen(rows[i].text), &is_json, &e));
        if (is_json != rows[i].is_json || !strstr(e.msg, rows[i].says))
            fail_msg("%s: %d, %s", rows[i].text, is_json, e.msg);
    }
}

static void depth_is_bounded(void **state)
{
    for (size_t depth = 2047; depth <= 2049; depth++) {
        char             text[2 * 2049];
        bool             is_json = false;
        autojson json_t *j;

        (void)state;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        j = json_parse_told(text, 2 * depth, &is_json, NULL);
        assert_true(is_json);
        assert_true(depth <= 2048 ? j != NULL : j == NULL);
    }
}

static void mends_texts(void **state)
{
#define BAD "\xef\xbf\xbd"
    static const char *const rows[][2] = {
        {"", ""},
        {"plain ä € 😀", "plain ä € 😀"},
        {"\xff", BAD},
        {"a\xc3", "a" BAD},                    /* cut */
        {"\xe2\x82", BAD BAD},                 /* cut */
        {"\xf0\x9f\x98x", BAD BAD BAD "x"},    /* cut by another */
        {"\xc0\xaf", BAD BAD},                 /* overlong */
        {"\xe0\x80\x80", BAD BAD BAD},         /* overlong */
        {"\xed\xa0\x80", BAD BAD BAD},         /* surrogate */
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* past U+10FFFF */
        {"\xf5\x80\x80\x80", BAD BAD BAD BAD},
        {"\x80ä", BAD "ä"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autojson json_t *j = json_text(rows[i][0], strlen(rows[i][0]));
        assert_string_equal(json_string_value(j), rows[i][1]);
    }
    autojson json_t *empty = json_text(NULL, 0); /* of a buffer that nothing was added to */
    assert_string_equal(json_string_value(empty), "");
    autojson json_t *nul = json_text("a\0\xff", 3);
    assert_int_equal(json_string_length(nul), 5);
    autojson json_t *none = json_text(NULL, 0); /* of a buf that has no bytes yet */
    assert_string_equal(json_string_value(none), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_is_json),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(mends_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
