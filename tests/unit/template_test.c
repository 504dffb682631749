#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/fd.h"
#include "mcp/template.h"

/* The values as compact JSON in the order of the pattern; "" when it does not match. */
static char *matched(const char *pattern, const char *uri)
{
    autojson json_t *values = template_match(pattern, uri);

    return values ? json_dumps(values, JSON_COMPACT) : strdup("");
}

static void matches(void **state)
{
    static const struct {
        const char *pattern, *uri, *values;
    } rows[] = {
        {"t://a", "t://a", "{}"},
        {"t://a", "t://b", ""},
        {"t://a", "t://a/", ""},
        {"t://a", "t://", ""},
        {"", "", "{}"},
        {"{a}", "x", "{\"a\":\"x\"}"},
        {"{a}", "", ""},
        {"t://{id}/data", "t://7/data", "{\"id\":\"7\"}"},
        {"t://{id}/data", "t:///data", ""},
        {"t://{id}/data", "t://7/8/data", ""},
        {"t://{id}/data", "t://7/dat", ""},
        {"t://{id}/data", "t://7/data?", ""},
        {"s://{id}/{+path}", "s://7/a/b.txt", "{\"id\":\"7\",\"path\":\"a/b.txt\"}"},
        {"s://{id}/{+path}", "s://7/", ""},
        {"s://{id}/{+path}", "s://7//", "{\"id\":\"7\",\"path\":\"/\"}"},
        /* the end of a path is the last one that fits */
        {"a/{+path}/end", "a/x/end/y/end", "{\"path\":\"x/end/y\"}"},
        {"a/{+path}/end", "a/x/end/y", ""},
        {"a/{+path}/end", "a//end", ""},
        {"f:///{+path}.{id}", "f:///a.b/c.d.e", "{\"path\":\"a.b/c.d\",\"id\":\"e\"}"},
        {"f:///{+path}.{id}", "f:///a.b/c", ""}, /* {id} has no slash */
        {"{+a}/x/{b}/y/{+c}", "1/x/2/x/3/y/4/y", "{\"a\":\"1/x/2\",\"b\":\"3\",\"c\":\"4/y\"}"},
        {"{a}/x/{b}/y/{+c}", "1/x/2/3/y/4", ""},
        {"{a}-{b}", "1-2-3", "{\"a\":\"1-2\",\"b\":\"3\"}"},
        {"{a}-{b}", "-", ""},
        {"{a}{b}", "123", "{\"a\":\"12\",\"b\":\"3\"}"},
        {"{a}{b}", "1", ""},
        {"{a}aab", "aaaab", "{\"a\":\"aa\"}"}, /* literals that overlap with the value */
        {"x{a", "x{a", "{}"},                  /* a brace that is never closed */
        {"x{a", "xb", ""},
        {"T://{a}", "t://b", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autofree char *values = matched(rows[i].pattern, rows[i].uri);
        if (strcmp(values, rows[i].values) != 0)
            fail_msg("%s of %s: %s", rows[i].pattern, rows[i].uri, values);
    }
}

static void decodes(void **state)
{
    static const struct {
        const char *pattern, *uri, *values;
    } rows[] = {
        {"{a}", "%41%62%20%c3%A4", "{\"a\":\"Ab ä\"}"},
        {"{a}", "a b+ä", "{\"a\":\"a b+ä\"}"}, /* what should be escaped, and a plus is a plus */
        {"{a}", "100%25", "{\"a\":\"100%\"}"},
        {"{a}", "%2541", "{\"a\":\"%41\"}"}, /* once */
        {"{a}", "%0A", "{\"a\":\"\\n\"}"},
        {"{a}.{b}", "x%2Ey.z", "{\"a\":\"x.y\",\"b\":\"z\"}"}, /* an escaped dot is no literal */
        {"{a}1", "%41", ""},                                   /* nor is a piece of an escape */
        {"{a}4{b}", "x%41y", ""},
        {"%41{a}", "%41x", "{\"a\":\"x\"}"}, /* literals are taken as they are */
        {"A{a}", "%41x", ""},
        /* bad escapes, NUL */
        {"{a}", "%", ""},
        {"{a}", "x%4", ""},
        {"{a}", "%zz", ""},
        {"{a}", "%4g", ""},
        {"{a}", "% 1", ""},
        {"{a}", "x%00y", ""},
        {"{+a}", "x%00", ""},
        /* not UTF-8 */
        {"{a}", "%ff", ""},
        {"{a}", "%c3", ""},
        {"{a}", "%c0%af", ""},
        {"{a}", "%ed%a0%80", ""},
        {"{a}", "x\xff", ""},
        /* a slash is a slash of the URI */
        {"{a}", "x%2Fy", ""},
        {"{+a}", "x%2fy", ""},
        {"{+a}", "x/y", "{\"a\":\"x/y\"}"},
        /* no way up, however it is written */
        {"s/{a}", "s/..", ""},
        {"s/{a}", "s/.", ""},
        {"s/{a}", "s/%2e%2E", ""},
        {"s/{a}", "s/.%2e", ""},
        {"s/{+a}", "s/../x", ""},
        {"s/{+a}", "s/x/..", ""},
        {"s/{+a}", "s/x/%2e%2e/y", ""},
        {"s/{+a}", "s/x/./y", ""},
        {"s/{+a}", "s//..", ""},
        {"s/{+a}", "s/...", "{\"a\":\"...\"}"},
        {"s/{+a}", "s/..x/.y/z..", "{\"a\":\"..x/.y/z..\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autofree char *values = matched(rows[i].pattern, rows[i].uri);
        if (strcmp(values, rows[i].values) != 0)
            fail_msg("%s of %s: %s", rows[i].pattern, rows[i].uri, values);
    }
}

/* `piece` again and again, up to `size` bytes. The caller frees. */
static char *repeated(const char *piece, size_t size)
{
    char  *text = malloc(size + 1);
    size_t length = strlen(piece), n = 0;

    for (; n + length <= size; n += length)
        memcpy(text + n, piece, length);
    text[n] = '\0';
    return text;
}

static void work_is_bounded(void **state)
{
    autofree char *as = repeated("a", TEMPLATE_URI_MAX), *longer = repeated("a", 1 << 20);
    autofree char *many = repeated("{+x}a", 8192), *adjacent = repeated("{x}", 8192);
    autofree char *most = repeated("{+x}a", (size_t)5 * TEMPLATE_VARIABLES_MAX);
    autofree char *most_and_b = malloc(strlen(most) + 2);
    autofree char *literals = repeated("a", 8192 - 8);
    autofree char *around = malloc(8192 + 1);
    clock_t        begin = clock();

    (void)state;
    sprintf(most_and_b, "%sb", most);
    sprintf(around, "{+x}%s{y}", literals);
    assert_null(template_match(most_and_b, as)); /* with backtracking alone: 8192 over 16 ways */
    assert_null(template_match(many, as));
    assert_null(template_match(adjacent, as));
    assert_null(template_match("{+x}", longer));
    autojson json_t *one = template_match("{+x}", as), *all = template_match(most, as);
    autojson json_t *long_literal = template_match(around, as);
    assert_int_equal(json_string_length(json_object_get(one, "x")), TEMPLATE_URI_MAX);
    assert_non_null(all);
    assert_int_equal(json_string_length(json_object_get(long_literal, "y")), 1);
    if ((double)(clock() - begin) / CLOCKS_PER_SEC > 2)
        fail_msg("it takes too long");
}

static void expands(void **state)
{
    static const struct {
        const char *pattern, *values, *uri; /* "": there is none */
    } rows[] = {
        {"t://a", "{}", "t://a"},
        {"s://{id}/{+path}", "{\"id\":\"7\",\"path\":\"a/b.txt\"}", "s://7/a/b.txt"},
        {"s://{id}/{+path}", "{\"id\":\"7\",\"path\":\"ä b?#%41\\n\"}",
         "s://7/%C3%A4%20b%3F%23%2541%0A"},
        {"s://{id}/{+path}", "{\"id\":\"7/8\",\"path\":\"x\"}", ""},
        {"s://{id}/{+path}", "{\"id\":\"7\",\"path\":\"../x\"}", ""},
        {"s://{id}/{+path}", "{\"id\":\"7\",\"path\":\"\"}", ""},
        {"s://{id}/{+path}", "{\"id\":\"7\"}", ""},
        {"s://{id}/{+path}", "{\"id\":7,\"path\":\"x\"}", ""},
        {"s://{id}", "{\"id\":\"x\\u0000y\"}", ""},
        {"s://{id}", "{\"id\":\"x\",\"more\":\"y\"}", ""},
        {"{a}-{b}", "{\"a\":\"1\",\"b\":\"2-3\"}", ""}, /* would be read as 1-2 and 3 */
        {"{a}-{b}", "{\"a\":\"1-2\",\"b\":\"3\"}", "1-2-3"},
        {"{a}/{a}", "{\"a\":\"x\"}", "x/x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autojson json_t *values = json_loads(rows[i].values, JSON_ALLOW_NUL, NULL);
        autofree char   *uri = template_expand(rows[i].pattern, values);
        if (strcmp(uri ? uri : "", rows[i].uri) != 0)
            fail_msg("%s with %s: %s", rows[i].pattern, rows[i].values, uri);
    }
}

/* Each byte that can stand in a value comes back, and no URI is longer than can be matched. */
static void comes_back(void **state)
{
    autofree char   *most = repeated("a", TEMPLATE_URI_MAX), *more = repeated("ä", 8192);
    autojson json_t *fits = json_pack("{s:s}", "x", most), *not = json_pack("{s:s}", "x", more);

    (void)state;
    for (char c = 1; c < 127; c++) {
        char             value[] = {'x', c, 'y', '\0'};
        autojson json_t *values = json_pack("{s:s}", "v", value);
        autofree char   *uri = template_expand("t://{+v}/z", values);
        assert_non_null(uri);
        autojson json_t *back = template_match("t://{+v}/z", uri);
        assert_true(json_equal(values, back));
    }
    autofree char *uri = template_expand("{x}", fits), *none = template_expand("{x}", not );
    assert_non_null(uri);
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches), cmocka_unit_test(decodes),    cmocka_unit_test(work_is_bounded),
        cmocka_unit_test(expands), cmocka_unit_test(comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
