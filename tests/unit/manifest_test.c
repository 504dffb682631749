#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fetch/manifest.h"
#include "store/seal.h"

static char path[64];
static int  dir = -1;

static int set_up(void **state)
{
    static const char *const front[] = {"bin/node", NULL};

    (void)state;
    strcpy(path, "/tmp/jerboa-manifest-XXXXXX");
    if (!mkdtemp(path))
        return -1;
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mkdirat(dir, "bin", 0755) < 0 || mkdirat(dir, "lib", 0755) < 0 ||
        file_write_text(dir, "bin/node", "node", NULL) < 0 ||
        fchmodat(dir, "bin/node", 0755, 0) < 0 || file_write_text(dir, "lib/a", "aaaa", NULL) < 0 ||
        file_write_text(dir, "lib/b", "bbbb", NULL) < 0 ||
        symlinkat("../lib/a", dir, "bin/npm") < 0)
        return -1;
    return manifest_seal(dir, front, NULL);
}

static int tear_down(void **state)
{
    char command[80];

    (void)state;
    fd_close(&dir);
    snprintf(command, sizeof command, "rm -rf %s", path);
    return system(command);
}

static void expect(int checked, const struct err *e, const char *sentence)
{
    assert_int_equal(checked, sentence ? -1 : 0);
    assert_string_equal(e->msg, sentence ? sentence : "");
}

/* What each of the two checks says. */
static void expect_both(const char *quick, const char *full)
{
    struct err e = {0}, f = {0};

    expect(seal_check(dir, &e), &e, quick);
    expect(manifest_verify(dir, &f), &f, full);
}

static void test_sound(void **state)
{
    (void)state;
    expect_both(NULL, NULL);
}

static void test_changed_front(void **state)
{
    (void)state;
    file_write_text(dir, "bin/node", "NODE", NULL); /* as long as before */
    expect_both("bin/node has changed", "bin/node has changed");
    unlinkat(dir, "bin/node", 0);
    expect_both("bin/node is missing", "bin/node is missing");
}

static void test_changed_elsewhere(void **state)
{
    (void)state;
    file_write_text(dir, "lib/a", "aaba", NULL);
    expect_both(NULL, "lib/a has changed");
    file_write_text(dir, "lib/a", "aaaa", NULL);
    expect_both(NULL, NULL); /* the content counts */
    unlinkat(dir, "lib/b", 0);
    expect_both(NULL, "lib/b is missing");
    file_write_text(dir, "lib/b", "bbbb", NULL);
    file_write_text(dir, "lib/aa", "", NULL);
    expect_both(NULL, "lib/aa does not belong to it");
    unlinkat(dir, "lib/aa", 0);
    file_write_text(dir, "lib/z", "", NULL);
    expect_both(NULL, "lib/z does not belong to it");
    unlinkat(dir, "lib/z", 0);
    assert_int_equal(fchmodat(dir, "lib/b", 0600, 0), 0);
    expect_both(NULL, "lib/b has changed");
    assert_int_equal(fchmodat(dir, "lib/b", 0644, 0), 0);
    unlinkat(dir, "bin/npm", 0);
    assert_int_equal(symlinkat("../lib/b", dir, "bin/npm"), 0);
    expect_both(NULL, "bin/npm has changed");
}

/* The content changes behind the file's back, as on a failing disk. */
static void test_rotten_bits(void **state)
{
    struct stat     st;
    struct timespec times[2];

    (void)state;
    assert_int_equal(fstatat(dir, "bin/node", &st, 0), 0);
    file_write_text(dir, "bin/node", "nodE", NULL);
    times[0] = st.st_atim;
    times[1] = st.st_mtim;
    assert_int_equal(utimensat(dir, "bin/node", times, 0), 0);
    expect_both(NULL, "bin/node has changed");
}

static void test_a_copy_with_whole_seconds(void **state)
{
    struct stat     st;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};

    (void)state;
    assert_int_equal(fstatat(dir, "bin/node", &st, 0), 0);
    times[1].tv_sec = st.st_mtim.tv_sec;
    assert_int_equal(utimensat(dir, "bin/node", times, 0), 0);
    expect_both(NULL, NULL);
    times[1].tv_nsec = st.st_mtim.tv_nsec == 1 ? 2 : 1;
    assert_int_equal(utimensat(dir, "bin/node", times, 0), 0);
    expect_both("bin/node has changed", "bin/node has changed");
}

static void test_seal_itself(void **state)
{
    static const char *const texts[] = {"",  "jerboa-seal 1\n",        "jerboa-seal 1\n\xff\n\n",
                                        "x", "jerboa-seal 1\n4 5\n\n", "jerboa-seal 1\n4 5 \n\n"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        file_write_text(dir, SEAL_NAME, texts[i], NULL);
        expect_both("its seal cannot be read", "its seal cannot be read");
    }
    unlinkat(dir, SEAL_NAME, 0);
    expect_both("it has no seal", "it has no seal");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sound),
        TEST(test_changed_front),
        TEST(test_changed_elsewhere),
        TEST(test_rotten_bits),
        TEST(test_a_copy_with_whole_seconds),
        TEST(test_seal_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
