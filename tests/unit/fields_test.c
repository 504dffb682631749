#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "base/fields.h"

struct animal {
    const char   *name, *path;
    int64_t       legs;
    bool          wild;
    const json_t *young, *home;
};

static const struct field rows[] = {
    {"name", FIELD_STRING, offsetof(struct animal, name), true, 1, 8},
    {"path", FIELD_BYTES, offsetof(struct animal, path), false, 0, 8},
    {"legs", FIELD_INT, offsetof(struct animal, legs), false, 0, 8},
    {"wild", FIELD_BOOL, offsetof(struct animal, wild), false, 0, 0},
    {"young", FIELD_LIST, offsetof(struct animal, young), false, 1, 2},
    {"home", FIELD_OBJECT, offsetof(struct animal, home), false, 0, 0},
    {0},
};

static const struct {
    const char *text, *sentence;
} refused[] = {
    {"[]", "a must be an object"},
    {"null", "a must be an object"},
    {"{}", "a.name is missing"},
    {"{\"name\":null}", "a.name is missing"},
    {"{\"name\":1}", "a.name must be a string"},
    {"{\"name\":\"\"}", "a.name must be from 1 to 8 characters"},
    {"{\"name\":\"jerboajer\"}", "a.name must be from 1 to 8 characters"},
    {"{\"name\":\"äöüäöüäöü\"}", "a.name must be from 1 to 8 characters"},
    {"{\"name\":\"j\",\"path\":\"äöüäö\"}", "a.path must be from 0 to 8 bytes"},
    {"{\"name\":\"j\",\"path\":4}", "a.path must be a string"},
    {"{\"name\":\"j\",\"size\":1}", "a has no member 'size'"},
    {"{\"name\":\"j\",\"\":1}", "a has no member ''"},
    {"{\"name\":\"j\",\"legs\":\"4\"}", "a.legs must be a whole number"},
    {"{\"name\":\"j\",\"legs\":4.5}", "a.legs must be a whole number"},
    {"{\"name\":\"j\",\"legs\":1e300}", "a.legs must be a whole number"},
    {"{\"name\":\"j\",\"legs\":-1e18}", "a.legs must be a whole number"},
    {"{\"name\":\"j\",\"legs\":9.0}", "a.legs must be from 0 to 8"},
    {"{\"name\":\"j\",\"legs\":-1}", "a.legs must be from 0 to 8"},
    {"{\"name\":\"j\",\"legs\":9}", "a.legs must be from 0 to 8"},
    {"{\"name\":\"j\",\"wild\":1}", "a.wild must be true or false"},
    {"{\"name\":\"j\",\"young\":{}}", "a.young must be a list"},
    {"{\"name\":\"j\",\"young\":[]}", "a.young must be from 1 to 2 entries"},
    {"{\"name\":\"j\",\"young\":[1,2,3]}", "a.young must be from 1 to 2 entries"},
    {"{\"name\":\"j\",\"home\":[]}", "a.home must be an object"},
};

static json_t *parse(const char *text)
{
    json_t *j = json_parse(text, strlen(text), NULL);

    assert_non_null(j);
    return j;
}

static void every_type_is_decoded(void **state)
{
    autojson json_t *j = parse("{\"name\":\"jerboa\",\"legs\":4,\"wild\":true,\"young\":[1,2],"
                               "\"home\":{\"kind\":\"burrow\"}}");
    struct animal    a = {0};
    struct err       e = {0};

    (void)state;
    assert_int_equal(fields_decode(rows, j, "a", &a, &e), 0);
    assert_string_equal(a.name, "jerboa");
    assert_int_equal(a.legs, 4);
    assert_true(a.wild);
    assert_int_equal(json_array_size(a.young), 2);
    assert_string_equal(json_string_value(json_object_get(a.home, "kind")), "burrow");
}

/* What the schema allows is taken: characters are counted, and 4.0 is an integer. */
static void as_the_schema_says(void **state)
{
    autojson json_t *j = parse("{\"name\":\"äöü€🐀xyz\",\"path\":\"äöüä\",\"legs\":4.0}");
    autojson json_t *schema = fields_schema(rows), *expected;
    struct animal    a = {0};
    struct err       e = {0};

    (void)state;
    assert_int_equal(fields_decode(rows, j, "a", &a, &e), 0);
    assert_string_equal(a.name, "äöü€🐀xyz");
    assert_int_equal(a.legs, 4);
    expected = parse("{\"type\":\"object\",\"properties\":{"
                     "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8},"
                     "\"path\":{\"type\":\"string\"},"
                     "\"legs\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":8},"
                     "\"wild\":{\"type\":\"boolean\"},"
                     "\"young\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":2},"
                     "\"home\":{\"type\":\"object\"}},"
                     "\"required\":[\"name\"],\"additionalProperties\":false}");
    assert_true(json_equal(schema, expected));
}

/* Nothing twice: a choice has no bounds, and what requires nothing does not say so. */
static void short_schema(void **state)
{
    static const struct field choice[] = {
        {"name", FIELD_STRING, offsetof(struct animal, name), false, 1, 8, NULL,
         "{\"enum\":[\"jerboa\"]}"},
        {0},
    };
    autojson json_t *schema = fields_schema(choice);
    autojson json_t *expected =
        parse("{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
              "\"string\",\"enum\":[\"jerboa\"]}},\"additionalProperties\":false}");

    (void)state;
    assert_true(json_equal(schema, expected));
}

static void defaults_stand(void **state)
{
    autojson json_t *j = parse("{\"name\":\"j\",\"legs\":null}");
    struct animal    a = {.legs = 2, .wild = true};

    (void)state;
    assert_int_equal(fields_decode(rows, j, "a", &a, NULL), 0);
    assert_int_equal(a.legs, 2);
    assert_true(a.wild);
    assert_null(a.young);
}

static void errors_name_the_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        autojson json_t *j = parse(refused[i].text);
        struct animal    a = {0};
        struct err       e = {0};

        if (fields_decode(rows, j, "a", &a, &e) == 0)
            fail_msg("%s was taken", refused[i].text);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_string_equal(e.msg, refused[i].sentence);
    }
}

/* jansson refuses \u0000 in a document; a value that we composed may have one. */
static void nul_bytes_are_refused(void **state)
{
    autojson json_t *j = json_pack("{s:s%}", "name", "a\0b", (size_t)3);
    struct animal    a = {0};
    struct err       e = {0};

    (void)state;
    assert_non_null(j);
    assert_int_equal(fields_decode(rows, j, "list[3]", &a, &e), -1);
    assert_string_equal(e.msg, "list[3].name must not contain a NUL byte");
    assert_null(a.name);
}

static void documents_are_strict(void **state)
{
    static const char *const bad[] = {
        "", " ", "{", "{\"a\":1,\"a\":2}", "{} x", "[NaN]", "\"\\u0000\"", "\"\xff\"", "{a:1}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err e = {0};

        if (json_parse(bad[i], strlen(bad[i]), &e))
            fail_msg("%s was taken", bad[i]);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_memory_equal(e.msg, "not JSON at line ", 17);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_decoded), cmocka_unit_test(as_the_schema_says),
        cmocka_unit_test(short_schema),          cmocka_unit_test(defaults_stand),
        cmocka_unit_test(errors_name_the_path),  cmocka_unit_test(nul_bytes_are_refused),
        cmocka_unit_test(documents_are_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
