#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"

static int fails(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "no file '%s'", "x");
}

static int tries(struct err *e)
{
    TRY(fails(e));
    return 0;
}

static void set_writes_kind_and_sentence(void **state)
{
    struct err e = {.sys = EIO};

    (void)state;
    assert_int_equal(err_set(&e, ERR_LIMIT, "%d of %s", 3, "them"), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(e.sys, 0);
    assert_string_equal(e.msg, "3 of them");
}

static void sys_tells_errno(void **state)
{
    struct err e = {0};

    (void)state;
    errno = ENOENT;
    assert_int_equal(err_sys(&e, "open %s", "/nowhere"), -1);
    assert_int_equal(e.kind, ERR_INTERNAL);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.msg, "open /nowhere: No such file or directory");
}

static void wrap_keeps_kind_and_errno(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(tries(&e), -1);
    e.sys = ENOENT;
    assert_int_equal(err_wrap(&e, "line %d", 7), -1);
    assert_int_equal(err_wrap(&e, "npmrc"), -1);
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.msg, "npmrc: line 7: no file 'x'");
}

/* What lay on the stack; the next calls lie there, too. */
static void __attribute__((noinline)) leave_traces(void)
{
    volatile char trace[8192];

    for (size_t i = 0; i < sizeof trace; i++)
        trace[i] = 'x';
}

/* They travel between processes as they are. */
static void nothing_of_the_stack_is_behind_a_sentence(void **state)
{
    struct err e = {0};

    (void)state;
    err_set(&e, ERR_INVALID, "b");
    leave_traces();
    err_wrap(&e, "a");
    assert_string_equal(e.msg, "a: b");
    for (size_t i = 5; i < sizeof e.msg; i++)
        assert_int_equal(e.msg[i], 0);
}

/* The reason of the system is the part that must survive a long name. */
static void long_sentences_are_cut(void **state)
{
    struct err e = {0};
    char       name[500];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    err_set(&e, ERR_INVALID, "%s", name);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    err_wrap(&e, "%s", name);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    errno = EACCES;
    err_sys(&e, "%s", name);
    assert_non_null(strstr(e.msg, ": Permission denied"));
    err_wrap(&e, "in front");
    assert_memory_equal(e.msg, "in front: nnn", 13);
    assert_int_equal(e.sys, EACCES);
}

static void null_drops_the_sentence(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_LIMIT, "x"), -1);
    assert_int_equal(err_sys(NULL, "x"), -1);
    assert_int_equal(err_wrap(NULL, "x"), -1);
}

static void append_says_what_to_do(void **state)
{
    struct err e = {0};

    (void)state;
    errno = EROFS;
    err_sys(&e, "/x");
    err_append(&e, "mount it anew");
    assert_string_equal(e.msg, "/x: Read-only file system: mount it anew");
    assert_int_equal(e.sys, EROFS);
    for (int i = 0; i < 50; i++)
        err_append(&e, "and so on");
    assert_int_equal(strlen(e.msg), ERR_MSG_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_writes_kind_and_sentence),
        cmocka_unit_test(sys_tells_errno),
        cmocka_unit_test(wrap_keeps_kind_and_errno),
        cmocka_unit_test(append_says_what_to_do),
        cmocka_unit_test(nothing_of_the_stack_is_behind_a_sentence),
        cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(null_drops_the_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
