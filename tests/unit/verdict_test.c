#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>

#include "sandbox/verdict.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
    struct verdict_facts facts;
    enum verdict         verdict;
    int                  status;
} cases[] = {
    {{.code = 0}, VERDICT_OK, 0},
    {{.code = 1}, VERDICT_ERROR, 1},
    {{.code = 255}, VERDICT_ERROR, 255},
    {{.code = -1, .signal = SIGSEGV}, VERDICT_ERROR, 128 + SIGSEGV},
    {{.code = -1, .signal = SIGKILL}, VERDICT_ERROR, 137}, /* somebody's kill -9, not memory */

    /* exit 0 is ok, whatever was touched on the way */
    {{.code = 0, .oom_kills = 1}, VERDICT_OK, 0},
    {{.code = 0, .forks_refused = 3}, VERDICT_OK, 0},
    {{.code = 0, .disk_full = true}, VERDICT_OK, 0},
    {{.code = 0, .heap_exhausted = true}, VERDICT_OK, 0},
    {{.code = 0, .timed_out = true}, VERDICT_OK, 0},
    {{.code = 0, .cancelled = true}, VERDICT_OK, 0},
    {{.code = 0, .output_exceeded = true}, VERDICT_OK, 0},

    /* memory: the counter and the end of the main process together */
    {{.code = -1, .signal = SIGKILL, .oom_kills = 1}, VERDICT_OOM, 137},
    {{.code = 137, .oom_kills = 1}, VERDICT_OOM, 137}, /* sh told of its child */
    {{.code = 137}, VERDICT_ERROR, 137},
    {{.code = 1, .oom_kills = 1}, VERDICT_ERROR, 1},
    {{.code = -1, .signal = SIGTERM, .oom_kills = 1}, VERDICT_ERROR, 128 + SIGTERM},
    {{.code = -1, .signal = SIGABRT, .heap_exhausted = true}, VERDICT_OOM, 137},
    {{.code = -1, .signal = SIGTRAP, .heap_exhausted = true}, VERDICT_OOM, 137},
    {{.code = 134, .heap_exhausted = true}, VERDICT_OOM, 137},
    {{.code = -1, .signal = SIGABRT}, VERDICT_ERROR, 134},
    {{.code = 1, .heap_exhausted = true}, VERDICT_ERROR, 1}, /* a script that prints the words */

    {{.code = 1, .forks_refused = 1}, VERDICT_PIDS, 1},
    {{.code = 1, .disk_full = true}, VERDICT_DISK, 1},
    {{.code = -1, .signal = SIGBUS, .disk_full = true}, VERDICT_DISK, 128 + SIGBUS},
    {{.code = -1, .disk_full = true}, VERDICT_DISK, 125}, /* no room for the script itself */
    {{.code = -1, .signal = SIGKILL, .timed_out = true}, VERDICT_TIMEOUT, 124},
    {{.code = 3, .timed_out = true}, VERDICT_TIMEOUT, 124},
    {{.code = -1, .signal = SIGINT, .cancelled = true}, VERDICT_CANCELLED, 128 + SIGINT},
    {{.code = -1, .signal = SIGKILL, .output_exceeded = true}, VERDICT_OUTPUT, 137},
    {{.code = -1, .lost = true}, VERDICT_SANDBOX_LOST, 125},
};

static void facts_become_verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        enum verdict v = verdict_of(&cases[i].facts);

        if (v != cases[i].verdict)
            fail_msg("case %zu: %s, not %s", i, verdict_name(v), verdict_name(cases[i].verdict));
        assert_int_equal(verdict_exit_status(v, &cases[i].facts), cases[i].status);
    }
}

/* All at once; then, one after the other, the first that applies goes away. */
static void the_first_that_applies_wins(void **state)
{
    struct verdict_facts f = {.lost = true,
                              .cancelled = true,
                              .timed_out = true,
                              .output_exceeded = true,
                              .code = -1,
                              .signal = SIGKILL,
                              .oom_kills = 1,
                              .forks_refused = 1,
                              .disk_full = true};

    (void)state;
    assert_int_equal(verdict_of(&f), VERDICT_SANDBOX_LOST);
    f.lost = false;
    assert_int_equal(verdict_of(&f), VERDICT_CANCELLED);
    f.cancelled = false;
    assert_int_equal(verdict_of(&f), VERDICT_TIMEOUT);
    f.timed_out = false;
    assert_int_equal(verdict_of(&f), VERDICT_OUTPUT);
    f.output_exceeded = false;
    assert_int_equal(verdict_of(&f), VERDICT_OOM);
    f.oom_kills = 0;
    assert_int_equal(verdict_of(&f), VERDICT_PIDS);
    f.forks_refused = 0;
    assert_int_equal(verdict_of(&f), VERDICT_DISK);
    f.disk_full = false;
    assert_int_equal(verdict_of(&f), VERDICT_ERROR);
}

static void verdicts_have_names(void **state)
{
    static const char *const names[] = {"ok",  "sandbox_lost", "cancelled", "timeout", "output",
                                        "oom", "pids",         "disk",      "error"};

    (void)state;
    for (size_t i = 0; i < N(names); i++)
        assert_string_equal(verdict_name((enum verdict)i), names[i]);
}

static void a_limit_has_its_source(void **state)
{
    static const struct {
        struct verdict_facts facts;
        const char          *source;
    } sources[] = {
        {{.code = -1, .signal = SIGKILL, .oom_kills = 1}, "cgroup"},
        {{.code = -1, .signal = SIGKILL, .oom_kills = 1, .watched = true}, "watch"},
        {{.code = -1, .signal = SIGABRT, .heap_exhausted = true}, "v8"},
        {{.code = -1, .signal = SIGABRT, .heap_exhausted = true, .watched = true}, "v8"},
        {{.code = 1, .forks_refused = 1}, "cgroup"},
        {{.code = 1, .disk_full = true}, "tmpfs"},
    };

    (void)state;
    for (size_t i = 0; i < N(sources); i++)
        assert_string_equal(verdict_source(verdict_of(&sources[i].facts), &sources[i].facts),
                            sources[i].source);
    assert_null(verdict_source(VERDICT_OK, &(struct verdict_facts){.oom_kills = 1}));
    assert_null(verdict_source(VERDICT_TIMEOUT, &(struct verdict_facts){.watched = true}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_become_verdicts),
        cmocka_unit_test(the_first_that_applies_wins),
        cmocka_unit_test(verdicts_have_names),
        cmocka_unit_test(a_limit_has_its_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
