#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tree.h"

static char path[64];
static int  top = -1;

static void nest(int depth)
{
    int at = dup(top);

    for (int i = 0; i < depth; i++) {
        int below;
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(file_write_text(below, "f", "x", NULL), 0);
        assert_true(fchmodat(below, "f", 0, 0) == 0 && (i % 50 || fchmod(at, 0555) == 0));
        close(at);
        at = below;
    }
    close(at);
}

static void test_size(void **state)
{
    char       block[8192] = "";
    autofd int fd = -1;
    int64_t    empty = -1, bytes = -1;

    (void)state;
    assert_int_equal(tree_size(top, &empty, NULL), 0);
    assert_int_equal(empty, 0);
    assert_int_equal(mkdirat(top, "a", 0755), 0);
    fd = openat(top, "a/b", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    for (int i = 0; i < 16; i++)
        assert_int_equal(fd_write_all(fd, block, sizeof block), 0);
    assert_int_equal(symlinkat("/usr", top, "usr"), 0);
    assert_int_equal(tree_size(top, &bytes, NULL), 0);
    assert_in_range(bytes, 16 * 8192, 16 * 8192 + 65536);
}

/* Deeper than a process may have descriptors, with directories that nobody may write. */
static void test_deep(void **state)
{
    struct rlimit old, few;
    struct err    e = {0};
    int64_t       bytes;

    (void)state;
    nest(700);
    assert_int_equal(tree_size(top, &bytes, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){2 * TREE_DEPTH_MAX + 16, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    tree_remove(top);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void test_links_are_not_followed(void **state)
{
    (void)state;
    assert_int_equal(mkdirat(top, "kept", 0755), 0);
    assert_int_equal(file_write_text(top, "kept/f", "x", NULL), 0);
    assert_int_equal(mkdirat(top, "gone", 0755), 0);
    assert_int_equal(symlinkat("../kept", top, "gone/link"), 0);
    autofd int gone = openat(top, "gone", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tree_remove(gone);
    assert_int_equal(unlinkat(top, "gone", AT_REMOVEDIR), 0);
    assert_int_equal(faccessat(top, "kept/f", F_OK, 0), 0);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(path, "/tmp/jerboa-tree-XXXXXX");
    if (!mkdtemp(path))
        return -1;
    top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return top < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    char command[80];

    (void)state;
    fd_close(&top);
    snprintf(command, sizeof command, "rm -rf %s", path);
    return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_size),
        TEST(test_deep),
        TEST(test_links_are_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
