#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "npm/integrity.h"

/* Of "abc", from FIPS 180. */
#define DIGITS                                                                                     \
    "3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw"

static int check(const char *promise, const char *data, size_t size, struct err *e)
{
    struct integrity     promised;
    struct integrity_sum sum = {0};

    TRY(integrity_parse(promise, &promised, e));
    integrity_begin(&sum);
    for (size_t i = 0; i < size; i++) /* byte by byte: it comes in pieces */
        integrity_add(&sum, data + i, 1);
    return integrity_end(&sum, &promised, e);
}

static void test_right(void **state)
{
    (void)state;
    assert_int_equal(check("sha512-" DIGITS "==", "abc", 3, NULL), 0);
    assert_int_equal(
        check("sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0= sha512-" DIGITS "==\n", "abc", 3, NULL), 0);
}

static void test_wrong(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(check("sha512-" DIGITS "==", "abd", 3, &e), -1);
    assert_int_equal(e.kind, ERR_INVALID);
    assert_int_equal(check("sha512-" DIGITS "==", "ab", 2, NULL), -1);
    assert_int_equal(check("sha512-" DIGITS "==", "", 0, NULL), -1);
}

static void test_no_promise(void **state)
{
    static const char *const texts[] = {
        "",
        "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=",
        "sha512-",
        "sha512-==",
        "sha512",
        "SHA512-" DIGITS "==",
        "sha512-" DIGITS,
        "sha512-" DIGITS "=",
        "sha512-" DIGITS "===",
        "sha512-" DIGITS "AA",
        "sha512- " DIGITS "==",
        "sha512-" DIGITS "==?x",
        "sha512-\xff" DIGITS "=",
        "sha512-*" DIGITS "=",
    };
    struct integrity ret;
    struct err       e;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        e = (struct err){0};
        if (integrity_parse(texts[i], &ret, &e) == 0)
            fail_msg("\"%s\" was accepted", texts[i]);
        assert_int_equal(e.kind, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_no_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
