#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/tree.h"
#include "box/pressure.h"

/* A /proc with what is looked at, and cgroups below it. */
static char place[64];

static void put(const char *name, const char *text)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", place, name);
    assert_int_equal(file_write_text(AT_FDCWD, path, text, NULL), 0);
}

static void make_dir(const char *name)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", place, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(place, sizeof place, "/tmp/pressure-XXXXXX");
    assert_non_null(mkdtemp(place));
    make_dir("self");
    make_dir("own");
    make_dir("own/deep");
    put("meminfo", "MemTotal:       8388608 kB\nMemFree:  1 kB\nMemAvailable:   1048576 kB\n");
    put("self/cgroup", "");
    put("self/mountinfo", "");
    return 0;
}

static int tear_down(void **state)
{
    int dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    tree_remove(dir);
    close(dir);
    return rmdir(place);
}

static void in_group(const char *type, const char *controller, const char *options)
{
    char text[256];

    snprintf(text, sizeof text, "4:%s:/own/deep\n", controller);
    put("self/cgroup", text);
    snprintf(text, sizeof text, "32 31 0:29 / %s rw - %s x rw%s\n", place, type, options);
    put("self/mountinfo", text);
}

static void assert_left(struct pressure *p, int64_t now_ms, int64_t mib)
{
    assert_int_equal(pressure_left(p, now_ms) >> 20, mib);
}

static void the_machine(void **state)
{
    struct pressure *p = pressure_new(place, -1);

    (void)state;
    assert_int_equal(pressure_floor(p), 256 << 20); /* a sixteenth would be more */
    assert_left(p, 1000, 1024);
    assert_false(pressure_is_short(p, 1000));
    put("meminfo", "MemTotal: 8388608 kB\nMemAvailable: 307200 kB\n");
    assert_left(p, 1099, 1024); /* believed */
    assert_left(p, 1100, 300);
    assert_true(pressure_is_short(p, 1100));
    assert_false(pressure_is_out(p, 1100));
    pressure_promise(p, 48 << 20);
    assert_true(pressure_is_out(p, 1100));
    assert_false(pressure_is_out(p, 1200)); /* what was promised is in use now, or never */
    put("meminfo", "MemTotal: 8388608 kB\nMemAvailable: 614400 kB\n");
    assert_true(pressure_is_short(p, 1300)); /* 600 MiB: that would come and go */
    put("meminfo", "MemTotal: 8388608 kB\nMemAvailable: 665600 kB\n");
    assert_false(pressure_is_short(p, 1400));
    pressure_free(p);
}

static void small_machines_and_none(void **state)
{
    struct pressure *p;

    (void)state;
    put("meminfo", "MemTotal: 524288 kB\nMemAvailable: 24576 kB\n");
    p = pressure_new(place, -1);
    assert_int_equal(pressure_floor(p), 32 << 20);
    assert_true(pressure_is_out(p, 0));
    pressure_free(p);
    p = pressure_new(place, 0);
    assert_false(pressure_is_short(p, 0));
    pressure_free(p);
    put("meminfo", "nonsense");
    p = pressure_new(place, 1 << 20);
    assert_true(pressure_left(p, 0) == INT64_MAX);
    assert_false(pressure_is_out(p, 0));
    pressure_promise(p, 1 << 30);
    assert_false(pressure_is_out(p, 0));
    pressure_free(p);
}

static void cgroups_v1(void **state)
{
    struct pressure *p;

    (void)state;
    in_group("cgroup", "memory", ",memory");
    put("own/deep/memory.limit_in_bytes", "9223372036854771712\n");
    put("own/deep/memory.usage_in_bytes", "104857600\n");
    put("own/memory.limit_in_bytes", "536870912\n"); /* 512 MiB */
    put("own/memory.usage_in_bytes", "524288000\n"); /* 500 */
    put("own/memory.stat", "cache 1\ntotal_inactive_file 52428800\ntotal_active_file 10485760\n");
    p = pressure_new(place, -1);
    assert_int_equal(pressure_floor(p), 32 << 20); /* of the group's */
    assert_left(p, 0, 72);
    put("own/memory.usage_in_bytes", "1000000000\n"); /* over it: nothing but what can be taken */
    assert_left(p, 100, 60);
    put("own/memory.stat", "total_inactive_file 99999999999999999999\n"); /* more than is used */
    assert_left(p, 200, 0);
    assert_true(pressure_is_out(p, 200));
    put("own/memory.usage_in_bytes", "1048576\n"); /* the rest is not even asked for */
    assert_left(p, 300, 511);
    pressure_free(p);
}

static void cgroups_v2(void **state)
{
    struct pressure *p;

    (void)state;
    in_group("cgroup2", "", "");
    put("own/deep/memory.max", "max\n");
    put("own/deep/memory.current", "104857600\n");
    put("own/memory.max", "1073741824\n");
    put("own/memory.current", "1048576000\n");
    put("own/memory.stat", "anon 1\ninactive_file 1048576\nactive_file 2097152\n");
    p = pressure_new(place, -1);
    assert_int_equal(pressure_floor(p), 64 << 20);
    assert_left(p, 0, 27);
    pressure_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(small_machines_and_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cgroups_v1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cgroups_v2, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
