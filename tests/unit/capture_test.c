#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
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

static void what_it_says_is_kept_if_it_is_to_be_quiet(void **state)
{
    const char *const few[] = {"sh", "-c", "echo one; echo why >&2; exit 3", NULL};
    const char *const many[] = {"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' a >&2; echo one",
                                NULL};
    const char *const held[] = {"sh", "-c", "sleep 60 >/dev/null & echo $!; echo why >&2", NULL};
    struct capture    c;

    (void)state;
    assert_int_equal(capture_run_quietly("/bin/sh", few, 60000, &c, NULL), 0);
    assert_string_equal(c.output, "one");
    assert_string_equal(c.said, "why\n");
    assert_int_equal(c.status, 3);
    assert_int_equal(capture_run_quietly("/bin/sh", many, 60000, &c, NULL), 0);
    assert_string_equal(c.output, "one");
    assert_int_equal(strspn(c.said, "a"), sizeof c.said - 1);
    assert_int_equal(capture_run_quietly("/bin/sh", held, 30000, &c, NULL), 0);
    assert_string_equal(c.said, "why\n");
    kill((pid_t)strtol(c.output, NULL, 10), SIGKILL);
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
    e = (struct err){0};
    assert_int_equal(run("echo one; exec sleep 60 >/dev/null", 1000, &c, &e), -1);
    assert_int_equal(e.kind, ERR_TIMEOUT);
    assert_string_equal(c.output, "one");
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
        cmocka_unit_test(what_it_says_is_kept_if_it_is_to_be_quiet),
        cmocka_unit_test(out_of_time),
        cmocka_unit_test(a_line_that_is_too_long_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
