#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "store/entry.h"
#include "store/gc.h"
#include "store/runtime.h"
#include "store/store.h"

enum { MB = 1 << 20 };

#define RUNTIME(version) "runtimes/node-" version "-" RUNTIME_ARCH

static const int64_t month_ms = (int64_t)GC_DAYS * 24 * 60 * 60 * 1000;

static char home[64];
static char told[4096]; /* what was removed, a line each */

static void on_removed(void *owner, const char *path, int64_t bytes)
{
    (void)owner;
    assert_in_range(bytes, 1, 2 * MB);
    strncat(told, path, sizeof told - strlen(told) - 2);
    strcat(told, "\n");
}

static void set_age(const char *path, int days)
{
    struct timespec then = {.tv_sec = time(NULL) - (time_t)days * 24 * 60 * 60};

    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[2]){then, then}, 0), 0);
}

/* An entry of one MiB that was used `days` ago. */
static void make(const char *entry, int days)
{
    autofree char *command = str_format("mkdir -p $JERBOA_HOME/%s/d && head -c %d /dev/zero "
                                        ">$JERBOA_HOME/%s/d/f",
                                        entry, MB, entry);
    autofree char *path = str_format("%s/%s", home, entry);

    assert_int_equal(system(command), 0);
    set_age(path, days);
}

static struct gc_result collect(int64_t max_bytes)
{
    struct gc_result r;

    told[0] = '\0';
    assert_int_equal(gc_run(&(struct gc_spec){max_bytes, month_ms, on_removed, NULL}, &r, NULL), 0);
    return r;
}

static void test_no_store(void **state)
{
    struct gc_result r;

    (void)state;
    assert_int_equal(rmdir(home), 0);
    r = collect(0);
    assert_int_equal(r.left_bytes, 0);
    assert_int_equal(mkdir(home, 0755), 0);
}

static void test_age(void **state)
{
    struct gc_result r;

    (void)state;
    make(RUNTIME("22.1.0"), 31);
    make(RUNTIME("24.1.0"), 99); /* the default: stays */
    make("layers/aa", 29);
    make("layers/bb", 33);
    make("tools/bun", 32);
    make("cache", 34);
    r = collect(-1);
    assert_string_equal(told, "cache\nlayers/bb\ntools/bun\n" RUNTIME("22.1.0") "\n");
    assert_int_equal(r.removed, 4);
    assert_in_range(r.removed_bytes, 4 * MB, 4 * MB + MB / 2);
    assert_in_range(r.left_bytes, 2 * MB, 2 * MB + MB / 2);
    r = collect(-1);
    assert_string_equal(told, "");
    assert_int_equal(r.removed_bytes, 0);
}

static void test_size(void **state)
{
    struct gc_result r;

    (void)state;
    make(RUNTIME("24.1.0"), 9);
    make(RUNTIME("24.2.0"), 9);
    make("layers/aa", 3);
    make("layers/bb", 5);
    make("layers/cc", 1);
    r = collect(100 * MB);
    assert_string_equal(told, "");
    r = collect(7 * MB / 2);
    assert_string_equal(told, RUNTIME("24.1.0") "\nlayers/bb\n"); /* by last use */
    assert_in_range(r.left_bytes, 3 * MB, 7 * MB / 2);
    r = collect(0);
    assert_string_equal(told, "layers/aa\nlayers/cc\n");
    assert_in_range(r.left_bytes, MB, 3 * MB / 2);
}

/* Holds one in another process, until that is killed. */
static pid_t hold_elsewhere(const char *part, const char *name)
{
    autofd int parent = store_ensure(part, NULL);
    int        ready[2];
    char       byte;
    pid_t      pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        if (entry_hold(parent, name, NULL) >= 0 && write(ready[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void test_in_use(void **state)
{
    struct runtime   runtime = {0};
    autofd int       held = -1;
    struct gc_result r;
    pid_t            other;

    (void)state;
    make(RUNTIME("22.1.0"), 99);
    make(RUNTIME("24.1.0"), 99);
    make("layers/aa", 99);
    other = hold_elsewhere("layers", "aa");
    assert_int_equal(runtime_newest("22", &runtime, NULL), 0);
    held = runtime_hold(&runtime, NULL);
    assert_true(held >= 0);
    r = collect(0);
    assert_string_equal(told, "");
    assert_int_equal(r.held, 2);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    r = collect(-1); /* it was used just now */
    assert_string_equal(told, "");
    r = collect(0);
    assert_string_equal(told, "layers/aa\n");
    fd_close(&held);
    r = collect(0);
    assert_string_equal(told, RUNTIME("22.1.0") "\n");
    assert_int_equal(runtime_hold(&runtime, NULL), -1);
}

static void test_leftovers(void **state)
{
    autofree char   *old = str_format("%s/downloads/a.tgz", home);
    autofree char   *part = str_format("%s/downloads/.b.part", home);
    autofd int       layers = store_ensure("layers", NULL), downloads = -1, writing = -1;
    struct gc_result r;

    (void)state;
    make("layers/.cc.part", 0);
    make("layers/.dd.part", 0);
    make("layers/.ee.77.old", 0);
    downloads = store_ensure("downloads", NULL);
    assert_int_equal(file_write_text(downloads, "a.tgz", "x", NULL), 0);
    assert_int_equal(file_write_text(downloads, ".b.part", "x", NULL), 0);
    assert_int_equal(file_write_text(downloads, "new.tgz", "x", NULL), 0);
    assert_int_equal(file_write_text(downloads, ".new.part", "x", NULL), 0);
    set_age(old, 2);
    set_age(part, 2);
    writing = entry_hold(layers, ".dd.part", NULL); /* any lock will do */
    r = collect(-1);
    assert_string_equal(told, ""); /* nothing that was an entry */
    assert_in_range(r.removed_bytes, 2 * MB, 5 * MB / 2);
    assert_int_equal(
        system("test \"$(cd $JERBOA_HOME && ls -A layers downloads | tr '\\n' ' ')\" = "
               "'downloads: .new.part new.tgz  layers: .dd.part '"),
        0);
}

static void test_certificates(void **state)
{
    autofree char   *old = str_format("%s/certificates/old", home);
    autofree char   *held = str_format("%s/certificates/held", home);
    autofd int       dir = store_ensure("certificates", NULL), holder = -1;
    struct gc_result r;

    (void)state;
    assert_int_equal(file_write_text(dir, "old", "x", NULL), 0);
    assert_int_equal(file_write_text(dir, "held", "x", NULL), 0);
    assert_int_equal(file_write_text(dir, "new", "x", NULL), 0);
    set_age(old, 2);
    set_age(held, 2);
    holder = open(held, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(holder, LOCK_SH), 0);
    r = collect(-1);
    assert_int_not_equal(r.removed_bytes, 0);
    assert_int_equal(access(old, F_OK), -1);
    assert_int_equal(access(held, F_OK), 0);
    assert_int_equal(faccessat(dir, "new", F_OK, 0), 0);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(home, "/tmp/jerboa-gc-XXXXXX");
    return mkdtemp(home) ? setenv("JERBOA_HOME", home, 1) : -1;
}

static int tear_down(void **state)
{
    char command[80];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", home);
    return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_certificates), TEST(test_no_store), TEST(test_age),
        TEST(test_size),         TEST(test_in_use),   TEST(test_leftovers),
    };

    alarm(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
