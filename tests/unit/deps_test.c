/* Which dependencies are taken: names and ranges of a client, and what packages want themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "deps/deps.h"

static void takes_what_registries_have(void **state)
{
    static const struct layer_dep good[] = {
        {"lodash", "^4"},
        {"@scope/name", "1.x || >=2.5.0"},
        {"express", "latest"},
        {"JSONStream", "1 - 2"},
        {"a", "*"},
        {"b", ""},
        {"x.y-z_1~", "next-11"},
        {"c", "npm:lodash@^4.17.0"},
        {"d", "npm:@s/n@latest"},
        {"e", "npm:lodash"},
        {"f", "~1.2"},
        {"g", "v1.2.3"},
        {"h", "1.0.0-beta.1"},
        {"i", ">= 1.0 < 2"},
        {"j", "=1.2.3"},
        {"k", "npm:@scope/name"},
    };
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int r = deps_check(&good[i], 1, &e);
        if (r < 0)
            fail_msg("%s@%s: %s", good[i].name, good[i].range, e.msg);
        assert_true(deps_is_of_registry(good[i].range));
    }
    assert_int_equal(deps_check(good, sizeof good / sizeof good[0], &e), 0);
}

static void refuses_other_names(void **state)
{
    static const char *const bad[] = {
        "",     ".x",       "_x",    "a b",      "../x",   "a/b",
        "@a",   "@/b",      "@a/",   "@a/.b",    "@a/b/c", "node_modules",
        "a\nb", "a;b",      "$(id)", "`id`",

        "a@1",  "http://x", "a\\b",  "\xc3\xa4", "a\x7f",  "--ignore-scripts=false",
    };
    char long_name[216];

    (void)state;
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[215] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err e = {0};
        if (deps_check(&(struct layer_dep){bad[i], "1"}, 1, &e) == 0)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(e.kind, ERR_INVALID);
    }
    assert_int_equal(deps_check(&(struct layer_dep){long_name, "1"}, 1, NULL), -1);
    assert_int_equal(deps_check(&(struct layer_dep){long_name + 1, "1"}, 1, NULL), 0);
    assert_int_equal(deps_check(&(struct layer_dep){NULL, "1"}, 1, NULL), -1);
}

static void refuses_other_places(void **state)
{
    static const char *const bad[] = {
        "file:../x",
        "file:/etc",
        "link:x",
        "workspace:*",
        "git+ssh://git@host/x.git",
        "git://host/x",
        "github:a/b",
        "a/b",
        "a/b#main",
        "https://host/x.tgz",
        "http://host/x.tgz",
        "git@host:a/b",
        "./x",
        "../x",
        "/x",
        "~/x",
        "catalog:",
        "patch:x",
        "npm:x@file:y",
        "npm:x@https://host/y",
        "C:\\x",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err e = {0};
        if (deps_check(&(struct layer_dep){"x", bad[i]}, 1, &e) == 0)
            fail_msg("'%s' was taken", bad[i]);
        assert_non_null(strstr(e.msg, "refused"));
        if (deps_is_of_registry(bad[i]))
            fail_msg("'%s' was taken for a registry's", bad[i]);
    }
}

static void refuses_what_is_no_version(void **state)
{
    static const char *const bad[] = {"npm:", "a b c!", "$(id)", "`id`", "1;2", "\xff", ".."};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (deps_check(&(struct layer_dep){"x", bad[i]}, 1, NULL) == 0)
            fail_msg("'%s' was taken", bad[i]);
    assert_int_equal(deps_check(&(struct layer_dep){"x", NULL}, 1, NULL), -1);
}

static void counts(void **state)
{
    struct layer_dep many[LAYER_DEPS_MAX + 1];
    struct err       e = {0};

    (void)state;
    assert_int_equal(deps_check((struct layer_dep[]){{"a", "1"}, {"a", "2"}}, 2, &e), -1);
    assert_string_equal(e.msg, "a is named twice");
    for (size_t i = 0; i <= LAYER_DEPS_MAX; i++)
        many[i] = (struct layer_dep){"a", "1"};
    assert_int_equal(deps_check(many, LAYER_DEPS_MAX + 1, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
}

static void manifest_has_them(void **state)
{
    char *text = deps_manifest((struct layer_dep[]){{"a", "^1"}, {"@s/b", "latest"}}, 2);

    (void)state;
    assert_string_equal(text, "{\n  \"type\": \"module\",\n  \"dependencies\": {\n"
                              "    \"a\": \"^1\",\n    \"@s/b\": \"latest\"\n  }\n}");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_registries_have),
        cmocka_unit_test(refuses_other_names),
        cmocka_unit_test(refuses_other_places),
        cmocka_unit_test(refuses_what_is_no_version),
        cmocka_unit_test(counts),
        cmocka_unit_test(manifest_has_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
