#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "fetch/told.h"

static void test_an_error_is_shown_without_what_a_terminal_obeys(void **state)
{
    struct err told = {.kind = ERR_UNAVAILABLE, .sys = 5, .msg = "a\033[2Jb\nc\x7f é"}, e = {0};

    (void)state;
    assert_int_equal(told_check(&told, &e), -1);
    assert_int_equal(e.kind, ERR_UNAVAILABLE);
    assert_int_equal(e.sys, 5);
    assert_string_equal(e.msg, "a?[2Jb?c? é");
    assert_int_equal(told_check(&told, NULL), -1);
}

static void test_no_error_is_none(void **state)
{
    struct err told = {0}, e = {0};

    (void)state;
    assert_int_equal(told_check(&told, &e), 0);
}

static void test_an_error_without_an_end_or_of_no_kind(void **state)
{
    struct err told = {.kind = (enum err_kind)77}, e = {0};

    (void)state;
    memset(told.msg, 'x', sizeof told.msg);
    assert_int_equal(told_check(&told, &e), -1);
    assert_int_equal(e.kind, ERR_INTERNAL);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    told.kind = (enum err_kind) - 1;
    assert_int_equal(told_check(&told, &e), -1);
    assert_int_equal(e.kind, ERR_INTERNAL);
}

static void test_a_release_has_a_version_that_may_stand_in_a_path(void **state)
{
    static const char *const bad[] = {"", "../1.0.0", "1.0.0/..", "latest", "1.0"};
    struct release           r = {.version = "24.1.0-rc.1", .url = "https://a/b.tgz"};
    struct err               e = {0};

    (void)state;
    assert_int_equal(told_release(&r, &e), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(r.version, sizeof r.version, "%s", bad[i]);
        assert_int_equal(told_release(&r, &e), -1);
    }
}

static void test_a_release_whose_texts_do_not_end(void **state)
{
    struct release r = {.version = "1.0.0"};
    struct err     e = {0};

    (void)state;
    memset(r.url, 'x', sizeof r.url);
    assert_int_equal(told_release(&r, &e), -1);
    r = (struct release){0};
    memset(r.version, '1', sizeof r.version);
    assert_int_equal(told_release(&r, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_error_is_shown_without_what_a_terminal_obeys),
        cmocka_unit_test(test_no_error_is_none),
        cmocka_unit_test(test_an_error_without_an_end_or_of_no_kind),
        cmocka_unit_test(test_a_release_has_a_version_that_may_stand_in_a_path),
        cmocka_unit_test(test_a_release_whose_texts_do_not_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
