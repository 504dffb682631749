#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "npm/packument.h"

#define A10 "AAAAAAAAAA"
#define ZEROS "sha512-" A10 A10 A10 A10 A10 A10 A10 A10 "AAAAAA=="

static const struct {
    const char *version, *integrity, *tarball, *node;
} releases[] = {
    {"1.0.0", ZEROS, "https://far.test/p/-/p-1.0.0.tgz", ">=4"},
    {"1.10.0", ZEROS, "https://far.test/p/-/p-1.10.0.tgz", ">=20"},
    {"1.9.0", ZEROS, "https://far.test/p/-/p-1.9.0.tgz", NULL},
    {"2.0.0-rc.1", ZEROS, "https://far.test/x", NULL},
    {"3.0.0", ZEROS, "https://far.test/x", "banana"},
    {"4.0.0", NULL, "https://far.test/x", NULL},
    {"5.0.0", ZEROS, NULL, NULL},
    {"6.0.0", ZEROS, "https://far.test/a b", NULL},
    {"7.0.0", ZEROS, "far.test", NULL},
    {"../../8.0.0", ZEROS, "https://far.test/x", NULL},
    {"8.0.0/../..", ZEROS, "https://far.test/x", NULL},
};

static int pick(const struct release_want *want, struct release *ret, struct err *e)
{
    autojson json_t *versions = json_object();
    autojson json_t *document = json_pack("{sO}", "versions", versions);

    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++)
        json_object_set_new(versions, releases[i].version,
                            json_pack("{s{ss*, ss*}, s{ss*}}", "dist", "integrity",
                                      releases[i].integrity, "tarball", releases[i].tarball,
                                      "engines", "node", releases[i].node));
    return packument_pick(document, "https://near.test:8443/npm/", want, ret, e);
}

static void test_newest(void **state)
{
    static const struct {
        const char *range, *node, *expected;
    } rows[] = {
        {"1", NULL, "1.10.0"},
        {"1", "18.0.0", "1.9.0"},
        {"1.0", "18.0.0", "1.0.0"},
        {"<3", NULL, "1.10.0"},
        {"3", NULL, "3.0.0"},
        {"<=3", "22.0.0", "1.10.0"},
        {"2.0.0-rc.1", NULL, "2.0.0-rc.1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct semver  node;
        struct release release;
        if (rows[i].node)
            assert_int_equal(semver_parse(rows[i].node, &node), 0);
        struct release_want want = {rows[i].range, rows[i].node ? &node : NULL};
        assert_int_equal(pick(&want, &release, NULL), 0);
        assert_string_equal(release.version, rows[i].expected);
    }
}

static void test_own_origin(void **state)
{
    struct release release;

    (void)state;
    assert_int_equal(pick(&(struct release_want){"1.0.0", NULL}, &release, NULL), 0);
    assert_string_equal(release.url, "https://near.test:8443/p/-/p-1.0.0.tgz");
}

static void test_hostile(void **state)
{
    static const struct {
        const char   *range;
        enum err_kind kind;
    } rows[] = {
        {"4", ERR_INVALID}, {"5", ERR_INVALID},   {"6", ERR_INVALID},
        {"7", ERR_INVALID}, {"8", ERR_NOT_FOUND}, {"9", ERR_NOT_FOUND},
    };
    struct release release;
    struct err     e;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        e = (struct err){0};
        struct release_want want = {rows[i].range, NULL};
        assert_int_equal(pick(&want, &release, &e), -1);
        assert_int_equal(e.kind, rows[i].kind);
    }
}

static void test_other_documents(void **state)
{
    static const char *const documents[] = {
        "[]",
        "{}",
        "\"x\"",
        "{\"versions\":[]}",
        "{\"versions\":{}}",
        "{\"versions\":{\"1.0.0\":1}}",
    };
    const struct release_want want = {"*", NULL};
    struct release            release = {0};

    (void)state;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        autojson json_t *document = json_parse(documents[i], strlen(documents[i]), NULL);
        assert_non_null(document);
        assert_int_equal(packument_pick(document, "https://near.test/", &want, &release, NULL), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest),
        cmocka_unit_test(test_own_origin),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_other_documents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
