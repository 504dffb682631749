#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "npm/search_answer.h"
#include "npm/search_query.h"

#define BEHIND "&size=20&popularity=1.0&quality=0.0&maintenance=0.0"

static void queries(void **state)
{
    static const struct {
        struct search_terms terms;
        const char         *expected; /* the text; NULL: refused */
    } cases[] = {
        {{.term = "express"}, "express"},
        {{.term = "react+components"}, "react%20components"},
        {{.term = "+a++b+"}, "a%20b"},
        {{.term = "c#&size=9"}, "c%23%26size%3D9"},
        {{.term = "50%"}, "50%25"},
        {{.term = "@scope/name"}, "%40scope%2Fname"},
        {{.term = "für"}, "f%C3%BCr"},
        {{.term = "a", .author = "jo"}, "a%20author%3Ajo"},
        {{.term = "a", .maintainer = "jo"}, "a%20maintainer%3Ajo"},
        {{.term = "a", .scope = "vue"}, "a%20scope%3Avue"},
        {{.term = "a", .scope = "@vue"}, "a%20scope%3Avue"},
        {{.term = "a", .keywords = "x,y"}, "a%20keywords%3Ax%2Cy"},
        {{.term = "a", .keywords = "x+y,-z"}, "a%20keywords%3Ax%2By%2C-z"},
        {{.term = "a", .not = "unstable"}, "a%20not%3Aunstable"},
        {{.term = "a", .is = "insecure"}, "a%20is%3Ainsecure"},
        {{.term = "a", .boost_exact = "false"}, "a%20boost-exact%3Afalse"},
        {{.term = "a", .boost_exact = "true"}, "a%20boost-exact%3Atrue"},
        {{"a", "b", "c", "d", "e", "f", "g", "false"},
         "a%20author%3Ab%20maintainer%3Ac%20scope%3Ad%20keywords%3Ae%20not%3Af%20is%3Ag"
         "%20boost-exact%3Afalse"},
        {{.term = ""}, NULL},
        {{.term = "+"}, NULL},
        {{.term = "a b"}, NULL},
        {{.term = "a\tb"}, NULL},
        {{.term = "a\nb"}, NULL},
        {{.term = "a", .author = ""}, NULL},
        {{.term = "a", .author = "a b"}, NULL},
        {{.term = "a", .scope = "@"}, NULL},
        {{.term = "a", .not = "x\x01"}, NULL},
        {{.term = "a", .boost_exact = "maybe"}, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autobuf struct buf query;
        struct err         e = {0};
        char               expected[1024];
        int                r;

        buf_init(&query, SEARCH_QUERY_MAX);
        r = search_query(&cases[i].terms, &query, &e);
        assert_int_equal(r, cases[i].expected ? 0 : -1);
        assert_int_equal(e.kind, cases[i].expected ? ERR_NONE : ERR_INVALID);
        if (!cases[i].expected)
            continue;
        snprintf(expected, sizeof expected, "-/v1/search?text=%s" BEHIND, cases[i].expected);
        assert_string_equal(buf_text(&query), expected);
    }
}

static void too_long(void **state)
{
    static char        many[8000];
    autobuf struct buf query;
    struct err         e = {0};

    (void)state;
    for (size_t i = 0; i + 1 < sizeof many; i++)
        many[i] = i % 2 ? '+' : '#';
    buf_init(&query, SEARCH_QUERY_MAX);
    assert_int_equal(search_query(&(struct search_terms){.term = many}, &query, &e), -1);
    assert_string_equal(e.msg, "the search is too long");
}

static void answers(void **state)
{
    static const struct {
        const char *answer, *expected; /* names and descriptions; NULL: no answer */
    } cases[] = {
        {"{}", NULL},
        {"[]", NULL},
        {"{\"objects\":{}}", NULL},
        {"{\"objects\":[]}", ""},
        {"{\"objects\":[{\"package\":{\"name\":\"a\",\"description\":\"d\"}}]}", "a(d) "},
        {"{\"objects\":[{\"package\":{\"name\":\"a\",\"description\":7}}]}", "a() "},
        {"{\"objects\":[{\"package\":{\"name\":7}},7,null,{},{\"package\":[]},{\"package\":{"
         "\"name\":"
         "\"a\"},\"score\":7}]}",
         "a() "},
        {"{\"objects\":[{\"package\":{\"name\":\"a\"},\"score\":{\"detail\":{\"popularity\":0.1}}},"
         "{\"package\":{\"name\":\"b\"},\"score\":{\"detail\":{\"popularity\":0.9}}},"
         "{\"package\":{\"name\":\"c\"},\"score\":{\"detail\":{\"popularity\":1}}},"
         "{\"package\":{\"name\":\"d\"},\"score\":{\"detail\":{\"popularity\":\"2\"}}}]}",
         "c() b() a() "},
        {"{\"objects\":[{\"package\":{\"name\":\"a\"},\"downloads\":{\"monthly\":5}},"
         "{\"package\":{\"name\":\"b\"},\"downloads\":{\"monthly\":9}},"
         "{\"package\":{\"name\":\"c\"},\"downloads\":{\"monthly\":5}}]}",
         "b() a() c() "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autojson json_t   *answer = json_loads(cases[i].answer, 0, NULL);
        autojson json_t   *list = search_answer_pick(answer, 3);
        autobuf struct buf seen;
        size_t             k;
        json_t            *row;

        assert_non_null(answer);
        assert_int_equal(list != NULL, cases[i].expected != NULL);
        buf_init(&seen, 1024);
        json_array_foreach (list, k, row) {
            buf_printf(&seen, "%s(%s) ", json_string_value(json_object_get(row, "name")),
                       json_string_value(json_object_get(row, "description")));
        }
        if (cases[i].expected)
            assert_string_equal(buf_text(&seen), cases[i].expected);
    }
}

/* Nobody's description makes the answer too long for the others. */
static void long_texts(void **state)
{
    static char      text[4000];
    autojson json_t *answer = NULL, *list = NULL;

    (void)state;
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 3);
    answer =
        json_pack("{s:[{s:{s:s, s:s}}, {s:{s:s}}, {s:{s:s}}]}", "objects", "package", "name", "a",
                  "description", text, "package", "name", text, "package", "name", "../up");
    assert_non_null(answer);
    list = search_answer_pick(answer, 5);
    assert_int_equal(json_array_size(list), 1);
    assert_int_equal(json_string_length(json_object_get(json_array_get(list, 0), "description")),
                     2 * SEARCH_ANSWER_DESCRIPTION);
}

/* More than it can hold is cut, not written past. */
static void many_found(void **state)
{
    json_t          *objects = json_array();
    autojson json_t *answer = json_pack("{s:o}", "objects", objects), *list = NULL;

    (void)state;
    for (int i = 0; i < 5000; i++)
        json_array_append_new(objects, json_pack("{s:{s:s}}", "package", "name", "x"));
    list = search_answer_pick(answer, 5);
    assert_int_equal(json_array_size(list), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries),    cmocka_unit_test(too_long),   cmocka_unit_test(answers),
        cmocka_unit_test(long_texts), cmocka_unit_test(many_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
