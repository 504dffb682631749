#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "box/pool.h"

static const struct pool_kind usual = {"node:lts", NULL}, other = {"node:22", "/x"};

/* Makes what is wanted, and gets it ready, until nothing is wanted any more. */
static size_t fill(struct pool *p, int64_t now)
{
    struct shelf *s;
    size_t        n = 0;

    while ((s = pool_wanting(p, now))) {
        pool_began(s);
        pool_became_ready(s);
        n++;
    }
    return n;
}

static void test_the_first_kind_has_a_minimum(void **state)
{
    struct pool  *p = pool_new(2, 16, &usual);
    struct shelf *s = pool_shelf(p, &usual, 0);

    (void)state;
    assert_int_equal(fill(p, 0), 2);
    assert_null(pool_take_surplus(p, 0));
    pool_left(s, true);
    assert_int_equal(fill(p, 0), 1);
    for (int64_t t = 0; t < 10; t++)
        pool_lower(p, t * POOL_LOWER_MS);
    assert_null(pool_take_surplus(p, 0));
    pool_free(p);
}

static void test_few_start_at_once(void **state)
{
    struct pool  *p = pool_new(8, 16, &usual);
    struct shelf *s;

    (void)state;
    for (int i = 0; i < POOL_STARTING_MAX; i++) {
        s = pool_wanting(p, 0);
        assert_non_null(s);
        pool_began(s);
    }
    assert_null(pool_wanting(p, 0));
    pool_left(s, false); /* somebody takes one before it is ready */
    assert_non_null(pool_wanting(p, 0));
    pool_free(p);
}

static void test_grows_by_what_was_missing_to_the_ceiling(void **state)
{
    struct pool  *p = pool_new(2, 5, &usual);
    struct shelf *s = pool_shelf(p, &usual, 0);

    (void)state;
    pool_missed(p, s);
    assert_int_equal(fill(p, 0), 3);
    for (int i = 0; i < 100; i++)
        pool_missed(p, s);
    assert_int_equal(fill(p, 0), 2);
    assert_int_equal(s->spares, 5);
    pool_free(p);
}

static void test_falls_while_there_is_always_one_left(void **state)
{
    struct pool  *p = pool_new(1, 16, &usual);
    struct shelf *s = pool_shelf(p, &usual, 0);

    (void)state;
    pool_missed(p, s);
    pool_missed(p, s);
    fill(p, 0);
    assert_int_equal(s->target, 3);
    pool_lower(p, POOL_LOWER_MS); /* in the first minute there was none once */
    assert_int_equal(s->target, 3);
    pool_lower(p, POOL_LOWER_MS + 1);
    assert_int_equal(s->target, 3);
    pool_lower(p, 2 * POOL_LOWER_MS);
    assert_int_equal(s->target, 2);
    assert_ptr_equal(pool_take_surplus(p, 0), s);
    pool_left(s, true);
    assert_null(pool_take_surplus(p, 0));
    pool_shelf(p, &usual, 2 * POOL_LOWER_MS);
    pool_left(s, true); /* all were taken: they are needed */
    pool_left(s, true);
    fill(p, 0);
    pool_lower(p, 3 * POOL_LOWER_MS);
    assert_int_equal(s->target, 2);
    pool_free(p);
}

static void test_other_kinds_come_and_go(void **state)
{
    struct pool  *p = pool_new(2, 3, &usual);
    struct shelf *s = pool_shelf(p, &other, 0);

    (void)state;
    assert_ptr_equal(pool_shelf(p, &other, 0), s);
    pool_missed(p, s);
    assert_ptr_equal(pool_wanting(p, 0), s); /* who asked last comes first */
    assert_int_equal(fill(p, 0), 3);
    pool_lower(p, POOL_LOWER_MS);
    pool_lower(p, 2 * POOL_LOWER_MS);
    assert_ptr_equal(pool_take_surplus(p, 0), s);
    pool_left(s, true);
    pool_lower(p, 2 * POOL_LOWER_MS); /* the kind is forgotten */
    assert_int_equal(pool_shelf(p, &other, 0)->target, 0);
    pool_free(p);
}

static void test_others_leave_room_for_the_minimum(void **state)
{
    struct pool  *p = pool_new(2, 4, &usual);
    struct shelf *first = pool_shelf(p, &usual, 0), *s = pool_shelf(p, &other, 0);

    (void)state;
    fill(p, 0);
    pool_left(first, true);
    pool_left(first, true);
    for (int i = 0; i < 10; i++)
        pool_missed(p, s);
    assert_int_equal(fill(p, 0), 4);
    assert_int_equal(first->spares, 2);
    assert_int_equal(s->spares, 2);
    pool_free(p);
}

static void test_a_kind_that_cannot_be_made_is_forgotten(void **state)
{
    struct pool  *p = pool_new(1, 4, &usual);
    struct shelf *s = pool_shelf(p, &other, 0);

    (void)state;
    pool_missed(p, s);
    pool_failed(s, 0);
    pool_failed(pool_shelf(p, &usual, 0), 0);
    pool_lower(p, POOL_LOWER_MS);
    assert_int_equal(pool_shelf(p, &other, 0)->target, 0);
    assert_int_equal(pool_shelf(p, &usual, 0)->target, 1);
    pool_free(p);
}

static void test_a_kind_that_nobody_asks_for_is_forgotten(void **state)
{
    struct pool  *p = pool_new(2, 2, &usual);
    struct shelf *s = pool_shelf(p, &other, 0);

    (void)state;
    pool_missed(p, s);
    fill(p, 0);
    assert_int_equal(s->spares, 0); /* there is no room */
    pool_lower(p, POOL_LOWER_MS);
    assert_int_equal(s->target, 1);
    assert_ptr_equal(pool_shelf(p, &other, POOL_LOWER_MS), s);
    pool_lower(p, 2 * POOL_LOWER_MS); /* somebody asked in that minute */
    assert_int_equal(s->target, 1);
    pool_lower(p, 3 * POOL_LOWER_MS);
    assert_int_equal(pool_shelf(p, &other, 0)->target, 0);
    assert_int_equal(pool_shelf(p, &usual, 0)->target, 2);
    pool_free(p);
}

static void test_who_asks_has_the_room_of_who_does_not(void **state)
{
    struct pool  *p = pool_new(2, 4, &usual);
    struct shelf *first = pool_shelf(p, &usual, 0), *s;
    int64_t       now = POOL_LOWER_MS - 1;

    (void)state;
    pool_missed(p, first);
    pool_missed(p, first);
    assert_int_equal(fill(p, 0), 4);
    s = pool_shelf(p, &other, now);
    assert_null(pool_take_surplus(p, now + 1)); /* nothing is missing */
    for (int i = 0; i < 3; i++)
        pool_missed(p, s);
    assert_null(pool_take_surplus(p, now)); /* the first one is of this minute, too */
    now++;
    pool_failed(s, now);
    assert_null(pool_take_surplus(p, now)); /* it could not be made */
    pool_works(p);
    for (size_t left = 3; left >= 2; left--) {
        assert_ptr_equal(pool_take_surplus(p, now), first);
        pool_left(first, true);
        assert_null(pool_take_surplus(p, now)); /* there is room */
        assert_int_equal(fill(p, now), 1);
        assert_int_equal(first->spares, left);
    }
    assert_null(pool_take_surplus(p, now)); /* the minimum stays */
    pool_left(first, true);
    pool_shelf(p, &usual, now + POOL_LOWER_MS);
    assert_null(pool_take_surplus(p, now + POOL_LOWER_MS)); /* its room is its own */
    assert_int_equal(fill(p, now), 1);
    pool_left(s, true);
    pool_left(s, true);
    s->target = 0;
    assert_int_equal(fill(p, now), 0); /* who had to go does not come back by itself */
    pool_free(p);
}

static void test_kinds_are_bounded_and_told_apart(void **state)
{
    struct pool                  *p = pool_new(1, 4, &usual);
    static const struct pool_kind kinds[] = {
        {"node:lts", "/x"}, {"node:lts", "/y"}, {"node:22", NULL}};
    char name[] = "node:a";

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_ptr_not_equal(pool_shelf(p, &kinds[i], 0), pool_shelf(p, &usual, 0));
    for (int i = 4; i < POOL_KINDS_MAX; i++, name[5]++)
        assert_non_null(pool_shelf(p, &(struct pool_kind){name, NULL}, 0));
    assert_null(pool_shelf(p, &(struct pool_kind){"node:z", NULL}, 0));
    assert_non_null(pool_shelf(p, &usual, 0));
    pool_free(p);
}

static void test_waits_longer_after_each_failure(void **state)
{
    struct pool  *p = pool_new(1, 4, &usual);
    struct shelf *s = pool_shelf(p, &usual, 0);
    int64_t       now = 0, pause, last = 0;

    (void)state;
    for (int i = 0; i < 10; i++) {
        pool_failed(s, now);
        assert_null(pool_wanting(p, now));
        assert_non_null(pool_wanting(p, now + pool_pause_ms(p, now, 1 << 20)));
        assert_int_equal(pool_pause_ms(p, now, 7), 7);
        for (pause = 1; !pool_wanting(p, now + pause); pause *= 2)
            assert_true(pause < 1 << 20);
        assert_true(pause >= last);
        last = pause;
        now += pause;
    }
    assert_true(last <= 1 << 16);
    fill(p, now); /* one became ready: the next failure is a first one */
    pool_left(s, true);
    pool_failed(s, now);
    assert_non_null(pool_wanting(p, now + 1000));
    pool_free(p);
}

static void test_is_low_when_fewer_than_half_are_ready(void **state)
{
    struct pool  *p = pool_new(4, 8, &usual);
    struct shelf *s = pool_shelf(p, &usual, 0);

    (void)state;
    assert_true(pool_is_low(p, 0));
    fill(p, 0);
    for (int left = 3; left >= 1; left--) {
        pool_left(s, true);
        assert_int_equal(pool_is_low(p, 0), left < 2);
    }
    pool_began(s); /* not ready yet */
    assert_true(pool_is_low(p, 0));
    pool_free(p);
}

static void test_is_not_low_by_what_cannot_be_made(void **state)
{
    struct pool  *p = pool_new(2, 2, &usual);
    struct shelf *first = pool_shelf(p, &usual, 0), *s = pool_shelf(p, &other, 0);

    (void)state;
    pool_missed(p, s);
    fill(p, 0);
    assert_int_equal(s->spares, 0); /* there is no room */
    assert_false(pool_is_low(p, 0));
    pool_left(first, true);
    pool_left(first, true);
    assert_true(pool_is_low(p, 0));
    pool_failed(first, 0);
    assert_false(pool_is_low(p, 0));
    assert_true(pool_is_low(p, pool_pause_ms(p, 0, 1 << 20)));
    pool_began(first);
    pool_began(first);
    assert_true(pool_is_low(p, 0)); /* it is on its way */
    pool_free(p);
}

static void test_tries_at_once_when_one_was_made_otherwise(void **state)
{
    struct pool  *p = pool_new(2, 16, &usual);
    struct shelf *s = pool_shelf(p, &usual, 0);

    (void)state;
    for (int i = 0; i < 12; i++)
        pool_failed(s, 0); /* there is no Node yet */
    assert_null(pool_wanting(p, 1000));
    pool_works(p);
    assert_int_equal(fill(p, 1000), 2);
    assert_int_equal(s->failures, 0);
    pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_kind_has_a_minimum),
        cmocka_unit_test(test_few_start_at_once),
        cmocka_unit_test(test_grows_by_what_was_missing_to_the_ceiling),
        cmocka_unit_test(test_falls_while_there_is_always_one_left),
        cmocka_unit_test(test_other_kinds_come_and_go),
        cmocka_unit_test(test_others_leave_room_for_the_minimum),
        cmocka_unit_test(test_a_kind_that_cannot_be_made_is_forgotten),
        cmocka_unit_test(test_a_kind_that_nobody_asks_for_is_forgotten),
        cmocka_unit_test(test_who_asks_has_the_room_of_who_does_not),
        cmocka_unit_test(test_kinds_are_bounded_and_told_apart),
        cmocka_unit_test(test_waits_longer_after_each_failure),
        cmocka_unit_test(test_is_low_when_fewer_than_half_are_ready),
        cmocka_unit_test(test_is_not_low_by_what_cannot_be_made),
        cmocka_unit_test(test_tries_at_once_when_one_was_made_otherwise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
