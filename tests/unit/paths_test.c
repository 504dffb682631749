#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/paths.h"

static void the_order_is_that_of_a_walk(void **state)
{
    static const char *const order[] = {"",         "\x01",  "a",     "a/\x01", "a/b",      "a/b/c",
                                        "a/b/\xff", "a/b\n", "a/b c", "a\x01",  "a-b",      "a-b/c",
                                        "a.txt",    "ab",    "b",     "\x7f",   "\xc3\xa4", "\xff"};
    const size_t             n = sizeof order / sizeof order[0];

    (void)state;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            int got = paths_compare(order[i], order[k]);
            if ((got > 0) - (got < 0) != (i > k) - (i < k))
                fail_msg("'%s' and '%s': %d", order[i], order[k], got);
        }
}

static void what_is_below(void **state)
{
    (void)state;
    assert_true(paths_is_below("a/b", "a"));
    assert_true(paths_is_below("a/b/c", "a"));
    assert_true(paths_is_below("a", ""));
    assert_false(paths_is_below("a", "a"));
    assert_false(paths_is_below("", ""));
    assert_false(paths_is_below("ab", "a"));
    assert_false(paths_is_below("a-b/c", "a"));
}

static void next_goes_through_all_or_past_a_directory(void **state)
{
    static const char *const names[] = {"b", "a/b/c", "a", "a-b", "a/b"};
    struct paths             s;

    (void)state;
    paths_init(&s, 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        paths_put(&s, names[i]);
    assert_string_equal(paths_next(&s, NULL, PATHS_AFTER, NULL), "a");
    assert_string_equal(paths_next(&s, "", PATHS_AFTER, NULL), "a");
    assert_string_equal(paths_next(&s, "a", PATHS_AFTER, NULL), "a/b");
    assert_string_equal(paths_next(&s, "a/b", PATHS_AFTER, NULL), "a/b/c");
    assert_string_equal(paths_next(&s, "a", PATHS_PAST, NULL), "a-b");
    assert_string_equal(paths_next(&s, "a/b", PATHS_PAST, NULL), "a-b");
    assert_string_equal(paths_next(&s, "a/a", PATHS_PAST, NULL), "a/b"); /* need not be there */
    assert_string_equal(paths_next(&s, "a-b", PATHS_AFTER, NULL), "b");
    assert_null(paths_next(&s, "b", PATHS_AFTER, NULL));
    assert_null(paths_next(&s, "", PATHS_PAST, NULL));
    paths_done(&s);
}

static int compare(const void *a, const void *b)
{
    return paths_compare(a, b);
}

/* Against a plain sorted array, with every name put twice and every third removed. */
static void many_in_the_worst_order(void **state)
{
    enum { N = 30000, SIZE = 16 };
    char(*names)[SIZE] = malloc((size_t)N * SIZE);
    struct paths s;
    const char  *at = NULL;
    void        *value;

    (void)state;
    assert_non_null(names);
    paths_init(&s, sizeof(int));
    for (int i = 0; i < N; i++) { /* ascending: a tree without balance would be a list */
        snprintf(names[i], SIZE, "%02d/%06d", i / 1000, i);
        *(int *)paths_put(&s, names[i]) = i;
        assert_int_equal(*(int *)paths_put(&s, names[i]), i);
    }
    assert_int_equal(s.n, N);
    for (int i = 0; i < N; i += 3) {
        paths_remove(&s, names[i]);
        paths_remove(&s, names[i]);
        assert_null(paths_find(&s, names[i]));
    }
    assert_int_equal(s.n, N - N / 3);
    qsort(names, N, SIZE, compare);
    for (int i = 0; i < N; i++) {
        if (i % 3 == 0)
            continue;
        at = paths_next(&s, at, PATHS_AFTER, &value);
        assert_string_equal(at, names[i]);
        assert_int_equal(*(int *)value, i);
    }
    assert_null(paths_next(&s, at, PATHS_AFTER, NULL));
    for (int i = 0; i < N; i++)
        paths_remove(&s, names[i]);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.bytes, 0);
    free(names);
    paths_done(&s);
}

static void pointers_hold_while_others_come_and_go(void **state)
{
    struct paths s;
    char         name[16];

    (void)state;
    paths_init(&s, sizeof(int));
    int *kept = paths_put(&s, "500");
    *kept = 42;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "%03d", i);
        if (i != 500)
            paths_put(&s, name);
    }
    for (int i = 0; i < 1000; i += 7) {
        snprintf(name, sizeof name, "%03d", i);
        if (i != 500)
            paths_remove(&s, name);
    }
    assert_ptr_equal(paths_find(&s, "500"), kept);
    assert_int_equal(*kept, 42);
    paths_done(&s);
    assert_int_equal(s.n, 0);
    assert_null(paths_find(&s, "500"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_a_walk),
        cmocka_unit_test(what_is_below),
        cmocka_unit_test(next_goes_through_all_or_past_a_directory),
        cmocka_unit_test(many_in_the_worst_order),
        cmocka_unit_test(pointers_hold_while_others_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
