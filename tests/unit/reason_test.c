#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/reason.h"

static void the_first_line_that_is_no_warning(void **state)
{
    char ret[REASON_MAX];

    (void)state;
    assert_true(reason_find("WARNING: of no matter\n\nit is lost\nsee --help\n", ret, sizeof ret));
    assert_string_equal(ret, "it is lost");
    assert_true(
        reason_find("time=\"2026\" level=warning msg=\"x\"\nError: no such user", ret, sizeof ret));
    assert_string_equal(ret, "Error: no such user");
    assert_true(reason_find("time=\"2026\" level=error msg=\"x\"\nError: y\nz", ret, sizeof ret));
    assert_string_equal(ret, "Error: y");
    assert_true(reason_find("time=\"1\" level=error a\ntime=\"2\" level=error b", ret, sizeof ret));
    assert_string_equal(ret, "time=\"1\" level=error a");
}

static void there_may_be_none(void **state)
{
    char ret[REASON_MAX] = "x";

    (void)state;
    assert_false(reason_find("", ret, sizeof ret));
    assert_string_equal(ret, "");
    assert_false(reason_find("\n\nWARNING: y\n", ret, sizeof ret));
    assert_string_equal(ret, "");
}

static void no_terminal_obeys_it(void **state)
{
    char ret[REASON_MAX];

    (void)state;
    reason_take("a\033[31m \xc3\xa4\tb\rc", ret, sizeof ret);
    assert_string_equal(ret, "a [31m    b");
}

static void what_does_not_fit_is_cut_between_words(void **state)
{
    char ret[20];

    (void)state;
    reason_take("nineteen characters", ret, sizeof ret);
    assert_string_equal(ret, "nineteen characters");
    reason_take("twenty two characters", ret, sizeof ret);
    assert_string_equal(ret, "twenty two ...");
    reason_take("a wordthatislongerthanhalfofit", ret, sizeof ret);
    assert_string_equal(ret, "a wordthatislon...");
}

static void nothing_is_written_behind_the_room(void **state)
{
    char line[400], ret[64];

    (void)state;
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    for (size_t blank = 0; blank < sizeof ret; blank++) {
        for (size_t size = 8; size < sizeof ret; size++) {
            memset(ret, '#', sizeof ret);
            line[blank] = ' ';
            reason_take(line, ret, size);
            line[blank] = 'x';
            assert_true(strlen(ret) < size);
            assert_int_equal(ret[size], '#');
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_that_is_no_warning),
        cmocka_unit_test(there_may_be_none),
        cmocka_unit_test(no_terminal_obeys_it),
        cmocka_unit_test(what_does_not_fit_is_cut_between_words),
        cmocka_unit_test(nothing_is_written_behind_the_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
