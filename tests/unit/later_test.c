#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "loop/deadline.h"
#include "loop/later.h"

struct owner {
    struct event_base *base;
    struct later       later;
    struct deadline    deadline;
    int                steps, passed, again;
};

static void step(void *arg)
{
    struct owner *o = arg;

    o->steps++;
    if (o->again-- > 0)
        later_ask(&o->later);
}

static void frees_itself(void *arg)
{
    struct owner *o = arg;

    o->steps++;
    later_done(&o->later);
}

static void passed(void *arg)
{
    ((struct owner *)arg)->passed++;
}

static int set_up(void **state)
{
    static struct owner o;

    o = (struct owner){.base = event_base_new()};
    deadline_init(&o.deadline, o.base, passed, &o);
    *state = &o;
    return 0;
}

static int tear_down(void **state)
{
    struct owner *o = *state;

    later_done(&o->later);
    deadline_done(&o->deadline);
    deadline_done(&o->deadline); /* idempotent, both */
    later_done(&o->later);
    event_base_free(o->base);
    return 0;
}

static void asked_often_it_runs_once_from_the_loop(void **state)
{
    struct owner *o = *state;

    later_init(&o->later, o->base, step, o);
    event_base_loop(o->base, EVLOOP_NONBLOCK);
    assert_int_equal(o->steps, 0);
    later_ask(&o->later);
    later_ask(&o->later);
    assert_int_equal(o->steps, 0);
    event_base_loop(o->base, EVLOOP_NONBLOCK);
    assert_int_equal(o->steps, 1);
    event_base_loop(o->base, EVLOOP_NONBLOCK);
    assert_int_equal(o->steps, 1);
}

static void a_step_may_ask_again(void **state)
{
    struct owner *o = *state;

    later_init(&o->later, o->base, step, o);
    o->again = 2;
    later_ask(&o->later);
    for (int i = 0; i < 5; i++)
        event_base_loop(o->base, EVLOOP_NONBLOCK);
    assert_int_equal(o->steps, 3);
}

static void a_step_may_end_itself(void **state)
{
    struct owner *o = *state;

    later_init(&o->later, o->base, frees_itself, o);
    later_ask(&o->later);
    event_base_loop(o->base, EVLOOP_NONBLOCK);
    assert_int_equal(o->steps, 1);
}

static void done_forgets_what_was_asked(void **state)
{
    struct owner *o = *state;

    later_init(&o->later, o->base, step, o);
    later_ask(&o->later);
    later_done(&o->later);
    event_base_loop(o->base, EVLOOP_NONBLOCK);
    assert_int_equal(o->steps, 0);
}

static void a_deadline_passes_once(void **state)
{
    struct owner *o = *state;

    deadline_set(&o->deadline, 1);
    event_base_dispatch(o->base); /* returns when nothing is pending any more */
    assert_int_equal(o->passed, 1);
}

/* The loop waits, and looks at its clock, at moments that have nothing to do with the kernel's
 * tick: eight is a multiple of the usual ones. */
static void a_deadline_never_passes_early(void **state)
{
    struct owner *o = *state;

    for (int i = 0; i < 30; i++) {
        usleep(300 * (i % 12));
        int64_t set_us = clock_us();
        deadline_set(&o->deadline, 8);
        usleep(4000);
        event_base_dispatch(o->base);
        assert_int_equal(o->passed, i + 1);
        assert_in_range(clock_us() - set_us, 8000, 60000000);
    }
}

static void a_deadline_is_replaced(void **state)
{
    struct owner *o = *state;

    deadline_set(&o->deadline, 3600000);
    deadline_set(&o->deadline, 0);
    event_base_dispatch(o->base);
    assert_int_equal(o->passed, 1);
    deadline_set(&o->deadline, 0);
    deadline_set(&o->deadline, 3600000);
    event_base_loop(o->base, EVLOOP_NONBLOCK);
    assert_int_equal(o->passed, 1);
}

static void a_cleared_deadline_never_passes(void **state)
{
    struct owner *o = *state;

    deadline_clear(&o->deadline);
    deadline_set(&o->deadline, 0);
    deadline_clear(&o->deadline);
    event_base_dispatch(o->base);
    assert_int_equal(o->passed, 0);
    deadline_set(&o->deadline, 0); /* and may be set again */
    event_base_dispatch(o->base);
    assert_int_equal(o->passed, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(asked_often_it_runs_once_from_the_loop),
        TEST(a_step_may_ask_again),
        TEST(a_step_may_end_itself),
        TEST(done_forgets_what_was_asked),
        TEST(a_deadline_passes_once),
        TEST(a_deadline_never_passes_early),
        TEST(a_deadline_is_replaced),
        TEST(a_cleared_deadline_never_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
