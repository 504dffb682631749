#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/turns.h"

/* What waits has a name of two letters: whose it is, which one. */
struct waiter {
    struct place place; /* first: it is found by it */
    char         name[3];
};

static struct waiter waiters[40];
static size_t        count;
static struct turns  turns;

static struct place *add(const char *name, const char *owner, const void *call)
{
    struct waiter *w = &waiters[count++];

    memcpy(w->name, name, sizeof w->name);
    turns_add(&turns, &w->place, owner, call);
    return &w->place;
}

/* The names' first letters are their owners. */
static void ask(const char *names)
{
    for (char name[3] = ""; *names; names += 2 + (names[2] == ' ')) {
        memcpy(name, names, 2);
        add(name, (char[]){name[0], '\0'}, NULL);
    }
}

static struct place *assert_is(struct place *place, const char *name)
{
    const struct waiter *w = (struct waiter *)place;

    assert_non_null(w);
    if (memcmp(w->name, name, 2) != 0)
        fail_msg("%s instead of %s", w->name, name);
    return place;
}

/* Takes as many as there are names; each is over at once. */
static void assert_next(const char *names)
{
    for (; *names; names += 2 + (names[2] == ' '))
        turns_drop(&turns, assert_is(turns_take(&turns), names));
}

static int set_up(void **state)
{
    (void)state;
    count = 0;
    turns_init(&turns);
    return 0;
}

static void alone_in_order(void **state)
{
    (void)state;
    assert_null(turns_take(&turns));
    ask("a1 a2 a3");
    assert_next("a1 a2 a3");
    assert_null(turns_take(&turns));
    ask("a4");
    assert_next("a4");
}

static void who_asks_for_much_delays_nobody(void **state)
{
    (void)state;
    ask("a1 a2 a3 a4 a5 a6");
    assert_next("a1 a2"); /* nobody else was there */
    ask("b1 b2 c1");
    assert_next("b1 c1 a3 a4 b2 a5 a6");
    assert_null(turns_take(&turns));
}

/* Whoever comes again and again gets a place of each round and no more. */
static void nobody_comes_before_a_round_is_over(void **state)
{
    (void)state;
    ask("a1 a2 a3 b1 c1 d1");
    assert_next("a1 b1");
    ask("b2");
    assert_next("c1 d1 b2 a2");
    ask("a4 b3");
    assert_next("b3 a3 a4");
}

/* Two who ask one after the other, one of them always in line: a third one's others get on. */
static void who_asks_again_and_again_keeps_nobody_out(void **state)
{
    (void)state;
    ask("a1 a2 a3 b1");
    assert_next("a1");
    ask("c1");
    assert_next("b1");
    ask("b2");
    assert_next("c1");
    ask("c2");
    assert_next("b2");
    ask("b3");
    assert_next("a2 c2");
    ask("c3");
    assert_next("b3 a3 c3");
}

static void what_nobody_owns_goes_by_call(void **state)
{
    int one = 0, other = 0;

    (void)state;
    add("o1", "", &one);
    add("o2", "", &one);
    add("o3", "", &one);
    add("p1", "", &other);
    assert_next("o1 p1 o2 o3");
    add("a1", "a", &one);
    add("a2", "a", &other);
    ask("b1");
    assert_next("a1 b1 a2"); /* an owner's calls are his */
}

static void dropped(void **state)
{
    struct place *second;

    (void)state;
    ask("a1");
    second = add("a2", "a", NULL);
    ask("b1 a3");
    turns_drop(&turns, second);
    assert_next("a1 b1 a3");
    assert_null(turns_take(&turns));
}

static void who_has_none(void **state)
{
    struct place *a, *b, *c;

    (void)state;
    ask("a1 a2 a3");
    a = assert_is(turns_take_first_of_owner(&turns), "a1");
    assert_null(turns_take_first_of_owner(&turns));
    ask("b1 b2 c1");
    b = assert_is(turns_take_first_of_owner(&turns), "b1");
    c = assert_is(turns_take_first_of_owner(&turns), "c1");
    assert_null(turns_take_first_of_owner(&turns));
    turns_drop(&turns, b);
    b = assert_is(turns_take_first_of_owner(&turns), "b2");
    turns_drop(&turns, c);
    assert_null(turns_take_first_of_owner(&turns)); /* c waits for nothing */
    turns_drop(&turns, a);
    turns_drop(&turns, b);
    assert_next("a2 a3"); /* who was passed over has lost no turn */
    assert_null(turns_take(&turns));
}

static void calls_that_have_none(void **state)
{
    int           one = 0, other = 0;
    struct place *first;

    (void)state;
    add("a1", "a", &one);
    add("a2", "a", &one);
    add("a3", "a", &other);
    first = assert_is(turns_take(&turns), "a1");
    assert_null(turns_take_first_of_owner(&turns));
    turns_drop(&turns, assert_is(turns_take_first_of_call(&turns), "a3"));
    assert_null(turns_take_first_of_call(&turns));
    turns_drop(&turns, first);
    assert_next("a2");
}

/* b may not. */
static bool is_not_b(void *context, const struct place *place)
{
    (void)context;
    return *place->owner != 'b';
}

static void who_may_not_holds_nobody_up(void **state)
{
    (void)state;
    ask("b1 b2 a1 a2 a3");
    assert_int_equal(turns.n, 5);
    assert_is(turns_find_who_may(&turns, is_not_b, NULL), "a1");
    for (const char *next = "a1 a2 "; *next; next += 3)
        turns_drop(&turns, assert_is(turns_take_who_may(&turns, is_not_b, NULL), next));
    ask("c1"); /* in the round of a3, the next one */
    turns_drop(&turns, assert_is(turns_take_who_may(&turns, is_not_b, NULL), "c1"));
    ask("c2");
    assert_next("b1 a3 c2 b2"); /* as soon as they may */
    assert_null(turns_find_who_may(&turns, is_not_b, NULL));
    assert_int_equal(turns.n, 0);
}

/* b is at his own limit for long, and then gets a turn of each round like others. */
static void nobody_saves_turns_up(void **state)
{
    (void)state;
    ask("b1 b2 b3 b4 a1 a2 a3 a4 a5 a6 a7 a8");
    for (const char *next = "a1 a2 a3 a4 a5 a6 "; *next; next += 3)
        turns_drop(&turns, assert_is(turns_take_who_may(&turns, is_not_b, NULL), next));
    ask("c1 c2 d1 b5");
    assert_is(turns_last(&turns), "b5");
    assert_next("b1 c1 d1 a7 b2 a8 c2 b3 b4 b5");
}

/* Nor are who have few in line sent away for him. */
static void who_was_passed_over_may_be_the_last(void **state)
{
    (void)state;
    ask("b1 b2 b3 a1 a2 a3 a4 a5 a6");
    for (const char *next = "a1 a2 a3 a4 a5 "; *next; next += 3)
        turns_drop(&turns, assert_is(turns_take_who_may(&turns, is_not_b, NULL), next));
    ask("c1 c2");
    assert_is(turns_last(&turns), "b3");
    turns_drop(&turns, turns_last(&turns));
    assert_is(turns_last(&turns), "c2");
    while (turns.n > 0)
        turns_drop(&turns, turns_take(&turns));
}

static void the_last_is_of_who_waits_for_most(void **state)
{
    struct place *first;

    (void)state;
    assert_null(turns_last(&turns));
    ask("a1 a2 a3");
    first = turns_take(&turns);
    ask("b1 c1 b2");
    assert_is(turns_last(&turns), "b2");
    assert_int_equal(turns_count_same(&turns, turns_last(&turns)), 2);
    turns_drop(&turns, turns_last(&turns));
    assert_is(turns_last(&turns), "a3");
    assert_int_equal(turns.n, 4);
    turns_drop(&turns, first);
    assert_int_equal(turns.n, 4);
    assert_next("b1 c1 a2 a3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(alone_in_order, set_up),
        cmocka_unit_test_setup(who_asks_for_much_delays_nobody, set_up),
        cmocka_unit_test_setup(nobody_comes_before_a_round_is_over, set_up),
        cmocka_unit_test_setup(who_asks_again_and_again_keeps_nobody_out, set_up),
        cmocka_unit_test_setup(what_nobody_owns_goes_by_call, set_up),
        cmocka_unit_test_setup(dropped, set_up),
        cmocka_unit_test_setup(who_has_none, set_up),
        cmocka_unit_test_setup(calls_that_have_none, set_up),
        cmocka_unit_test_setup(who_may_not_holds_nobody_up, set_up),
        cmocka_unit_test_setup(nobody_saves_turns_up, set_up),
        cmocka_unit_test_setup(who_was_passed_over_may_be_the_last, set_up),
        cmocka_unit_test_setup(the_last_is_of_who_waits_for_most, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
