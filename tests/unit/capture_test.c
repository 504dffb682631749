#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "store/capture.h"

static int run(const char *script, int timeout_ms, struct capture *ret, struct err *e)
{
    const char *const argv[] = {"sh", "-c", script, NULL};

    memset(ret, 'x', sizeof *ret); /* nothing of it may be left */
    return capture_run("/bin/sh", argv, timeout_ms, ret, e);
}

static void the_first_line_and_the_status(void **state)
{
    struct capture c;

    (void)state;
    assert_int_equal(run("echo one; echo two; exit 3", -1, &c, NULL), 0);
    assert_string_equal(c.output, "one");
    assert_int_equal(c.status, 3);
    assert_int_equal(run("kill -9 $$", 60000, &c, NULL), 0);
    assert_string_equal(c.output, "");
    assert_int_equal(c.status, 128 + 9);
}

static void out_of_time(void **state)
{
    struct capture c;
    struct err     e = {0};

    (void)state;
    assert_int_equal(run("exec sleep 60", 50, &c, &e), -1);
    assert_int_equal(e.kind, ERR_TIMEOUT);
    assert_string_equal(c.output, "");
    assert_int_equal(c.status, 128 + 9);
}

static void a_line_that_is_too_long_is_cut(void **state)
{
    struct capture c;

    (void)state;
    assert_int_equal(run("head -c 100000 /dev/zero | tr '\\0' a", 60000, &c, NULL), 0);
    assert_int_equal(strlen(c.output), sizeof c.output - 1);
    assert_int_equal(strspn(c.output, "a"), sizeof c.output - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_and_the_status),
        cmocka_unit_test(out_of_time),
        cmocka_unit_test(a_line_that_is_too_long_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
