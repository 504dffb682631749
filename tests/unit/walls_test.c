#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "jail/walls.h"
#include "sandbox/result.h"

static struct err failed(int sys, const char *what)
{
    struct err e = {0};

    errno = sys;
    err_sys(&e, "%s", what);
    return e;
}

/* The names in `walls.missing` of a result. */
static json_t *missing(const json_t *walls)
{
    struct run_result r = {.verdict = VERDICT_OK};
    autojson json_t  *result = result_json(&r, walls, NULL);

    return json_incref(json_object_get(json_object_get(result, "walls"), "missing"));
}

static void all_stand_until_one_is_missed(void **state)
{
    struct walls     w = {0};
    autojson json_t *list = walls_json(&w), *names = missing(list);
    struct err       e = {0};
    json_t          *wall;
    size_t           i, keeps = 0;

    (void)state;
    assert_int_equal(json_array_size(list), WALLS - 1);
    json_array_foreach (list, i, wall) {
        assert_true(json_is_true(json_object_get(wall, "on")));
        assert_true(strlen(json_string_value(json_object_get(wall, "name"))) > 0);
        assert_true(strlen(json_string_value(json_object_get(wall, "what"))) > 0);
        assert_null(json_object_get(wall, "why"));
        keeps += json_is_true(json_object_get(wall, "keeps"));
    }
    assert_int_equal(keeps, WALL_LIMITS - WALL_USER);
    assert_int_equal(json_array_size(names), 0);
    assert_int_equal(walls_check(&w, &e), 0);
}

static void a_missing_one_tells_why_and_what_to_do(void **state)
{
    struct walls w = {0};
    struct err   why = failed(EROFS, "/sys/fs/cgroup/memory"), e = {0};

    (void)state;
    assert_int_equal(walls_miss(&w, WALL_LIMITS, &why, &e), 0);
    why = failed(ENOSYS, "Landlock");
    assert_int_equal(walls_miss(&w, WALL_LANDLOCK, &why, &e), 0);
    autojson json_t *list = walls_json(&w), *names = missing(list);
    json_t          *limits = json_array_get(list, WALL_LIMITS - 1);
    assert_int_equal(json_array_size(names), 2);
    assert_string_equal(json_string_value(json_array_get(names, 0)), "cgroup");
    assert_string_equal(json_string_value(json_array_get(names, 1)), "landlock");
    assert_true(json_is_false(json_object_get(limits, "on")));
    assert_string_equal(json_string_value(json_object_get(limits, "why")),
                        "/sys/fs/cgroup/memory: Read-only file system");
    assert_non_null(strstr(json_string_value(json_object_get(limits, "fix")), "remount,bind,rw"));
    assert_int_equal(walls_check(&w, &e), -1); /* the first of them */
    assert_non_null(strstr(e.msg, "--strict: the wall 'cgroup' is missing: /sys/fs/cgroup/memory: "
                                  "Read-only file system: as root: "));
}

static void one_that_cannot_be_built_just_now_is_not_missing(void **state)
{
    static const int passing[] = {EMFILE, ENFILE, ENOMEM, EIO, EAGAIN, ENOSPC, EINTR, ENOLCK};
    struct walls     w = {0};
    struct err       e = {0}, why;

    (void)state;
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        why = failed(passing[i], "/proc/self/mountinfo");
        assert_int_equal(walls_miss(&w, WALL_LIMITS, &why, &e), -1);
        assert_int_equal(e.sys, passing[i]);
        assert_int_equal(walls_miss(&w, WALL_LIMITS, &why, NULL), -1);
    }
    why = failed(EMFILE, "/proc/self/mountinfo");
    walls_miss(&w, WALL_LIMITS, &why, &e);
    assert_string_equal(
        e.msg,
        "the wall 'cgroup' cannot be built just now: /proc/self/mountinfo: Too many open files");
    err_set(&why, ERR_TIMEOUT, "locked for too long");
    assert_int_equal(walls_miss(&w, WALL_LIMITS, &why, &e), -1);
    autojson json_t *list = walls_json(&w), *names = missing(list);
    assert_int_equal(json_array_size(names), 0);
}

static void a_waived_one_is_off_and_not_missing(void **state)
{
    struct walls w = {0};

    (void)state;
    walls_waive(&w, WALL_NETWORK, "--network host");
    autojson json_t *list = walls_json(&w), *names = missing(list);
    json_t          *network = json_array_get(list, WALL_NETWORK - 1);
    assert_string_equal(json_string_value(json_object_get(network, "name")), "network-namespace");
    assert_true(json_is_false(json_object_get(network, "on")));
    assert_string_equal(json_string_value(json_object_get(network, "why")),
                        "--network host leaves it out");
    assert_int_equal(json_array_size(names), 0);
    assert_int_equal(walls_check(&w, NULL), 0);
}

static void root_is_not_sent_to_root(void **state)
{
    struct walls w = {0};
    struct err   why = {.kind = ERR_UNAVAILABLE};

    (void)state;
    assert_int_equal(walls_miss(&w, WALL_UID_RANGE, &why, NULL), 0);
    assert_string_equal(w.gaps[WALL_UID_RANGE].fix, geteuid() == 0
                                                        ? "run Jerboa outside of this container"
                                                        : "run Jerboa as root");
}

static void a_user_without_a_cgroup_is_told_the_command(void **state)
{
    struct walls w = {0};
    struct err   why = failed(EACCES, "/sys/fs/cgroup/memory");
    char         command[64];

    (void)state;
    assert_int_equal(walls_miss(&w, WALL_LIMITS, &why, NULL), 0);
    snprintf(command, sizeof command, " delegate %u", (unsigned)getuid());
    assert_non_null(strstr(w.gaps[WALL_LIMITS].fix, "as root: /"));
    assert_non_null(strstr(w.gaps[WALL_LIMITS].fix, command));
}

/* Half a command would be another one. */
static void a_command_that_does_not_fit_is_left_out(void **state)
{
    struct walls w = {.gaps[WALL_LIMITS] = {.missing = true, .why = "no"}};
    struct err   e = {0};

    (void)state;
    memset(w.gaps[WALL_LIMITS].fix, 'x', 165);
    assert_int_equal(walls_check(&w, &e), -1);
    assert_non_null(strstr(e.msg, ": ...: xxx"));
    w.gaps[WALL_LIMITS].fix[165] = 'x';
    assert_int_equal(walls_check(&w, &e), -1);
    assert_string_equal(e.msg, "--strict: the wall 'cgroup' is missing: no");
}

static void a_failure_that_nobody_knows_stays_as_it_is(void **state)
{
    struct err e = failed(EIO, "pivot_root");

    (void)state;
    walls_explain(WALL_ROOT, &e);
    assert_string_equal(e.msg, "pivot_root: Input/output error");
    e = failed(ENOSYS, "pivot_root");
    walls_explain(WALL_ROOT, &e);
    assert_non_null(strstr(e.msg, "Function not implemented: sandboxes need Linux 5.12"));
}

static void a_result_as_json(void **state)
{
    struct walls      w = {0};
    struct run_result r = {.verdict = VERDICT_OOM,
                           .facts = {.code = -1, .signal = 9, .oom_kills = 1, .watched = true},
                           .wall_ms = 7,
                           .cpu_us = 5500,
                           .peak_bytes = 1 << 20,
                           .max_rss_bytes = 2 << 20};

    (void)state;
    autojson json_t *list = walls_json(&w), *result = result_json(&r, list, NULL);
    autojson json_t *expected = json_pack(
        "{s:s, s:s, s:n, s:i, s:s, s:{s:i, s:i, s:i, s:i}, s:[], s:{s:[]}}", "verdict", "oom",
        "source", "watch", "code", "signal", 9, "ended", "sandbox", "usage", "wallMs", 7, "cpuMs",
        5, "peakBytes", 1 << 20, "maxRssBytes", 2 << 20, "refused", "walls", "missing");
    assert_non_null(expected);
    assert_true(json_equal(result, expected));

    r = (struct run_result){.verdict = VERDICT_OK};
    autojson json_t *plain = result_json(&r, NULL, NULL); /* the sandbox never told */
    assert_null(json_object_get(plain, "source"));
    assert_string_equal(json_string_value(json_object_get(plain, "ended")), "run");
    assert_true(json_is_null(json_object_get(json_object_get(plain, "walls"), "missing")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_stand_until_one_is_missed),
        cmocka_unit_test(a_missing_one_tells_why_and_what_to_do),
        cmocka_unit_test(one_that_cannot_be_built_just_now_is_not_missing),
        cmocka_unit_test(a_waived_one_is_off_and_not_missing),
        cmocka_unit_test(root_is_not_sent_to_root),
        cmocka_unit_test(a_user_without_a_cgroup_is_told_the_command),
        cmocka_unit_test(a_command_that_does_not_fit_is_left_out),
        cmocka_unit_test(a_failure_that_nobody_knows_stays_as_it_is),
        cmocka_unit_test(a_result_as_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
