#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "sandbox/landing.h"

/* A directory of the user's, and beside it what nobody may reach from there. */
static char world[] = "/tmp/jerboa-landing-XXXXXX";
static int  world_fd, dir_fd, outside_fd;

static int make_world(void **state)
{
    (void)state;
    strcpy(world, "/tmp/jerboa-landing-XXXXXX");
    assert_non_null(mkdtemp(world));
    world_fd = open(world, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_return_code(mkdirat(world_fd, "dir", 0755), errno);
    assert_return_code(mkdirat(world_fd, "outside", 0755), errno);
    dir_fd = openat(world_fd, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    outside_fd = openat(world_fd, "outside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return 0;
}

static int remove_world(void **state)
{
    (void)state;
    tree_remove(world_fd);
    fd_close(&dir_fd);
    fd_close(&outside_fd);
    fd_close(&world_fd);
    return rmdir(world);
}

static int land(const char *path, const char *text, struct stat *ret_st)
{
    struct landing l;
    struct err     e = {0};

    TRY(landing_open(&l, dir_fd, path, &e));
    TRY(landing_write(&l, text, strlen(text), &e));
    return landing_commit(&l, dir_fd, ret_st, &e);
}

static size_t count(int fd)
{
    DIR   *dir = tree_list(fd);
    size_t n = 0;

    assert_non_null(dir);
    while (tree_next(dir))
        n++;
    closedir(dir);
    return n;
}

static void expect_text(int fd, const char *path, const char *text)
{
    autofree char *read = NULL;
    struct err     e = {0};

    assert_return_code(file_read_text(fd, path, 100, &read, &e), 0);
    assert_string_equal(read, text);
}

static void a_file_appears_with_its_directories(void **state)
{
    struct stat st = {0}, seen;

    (void)state;
    assert_return_code(land("a/b/c", "text", &st), 0);
    expect_text(dir_fd, "a/b/c", "text");
    assert_return_code(fstatat(dir_fd, "a/b/c", &seen, 0), errno);
    assert_int_equal(st.st_ino, seen.st_ino);
    assert_int_equal(seen.st_mode & 07777, 0644);
}

static void one_that_is_replaced_keeps_its_mode(void **state)
{
    struct stat st = {0}, seen;

    (void)state;
    assert_return_code(land("tool", "old", &st), 0);
    assert_return_code(fchmodat(dir_fd, "tool", 04750, 0), errno);
    assert_return_code(land("tool", "new", &st), 0);
    expect_text(dir_fd, "tool", "new");
    assert_return_code(fstatat(dir_fd, "tool", &seen, 0), errno);
    assert_int_equal(seen.st_mode & 07777, 0750); /* and nothing that would be somebody's right */
    assert_int_equal(count(dir_fd), 1);
}

static void until_its_end_there_is_nothing_of_it(void **state)
{
    struct landing l;
    struct err     e = {0};
    struct stat    st = {0};

    (void)state;
    assert_return_code(land("x", "old", &st), 0);
    assert_return_code(landing_open(&l, dir_fd, "x", &e), 0);
    assert_return_code(landing_write(&l, "ne", 2, &e), 0);
    expect_text(dir_fd, "x", "old");
    landing_drop(&l);
    expect_text(dir_fd, "x", "old");
    assert_int_equal(count(dir_fd), 1);
}

static void no_path_leads_out(void **state)
{
    static const char *const paths[] = {
        "",   "/",   "/etc/x", "..",     "../outside/x", "a/../../outside/x", "./x",    "a//x",
        "a/", "a/.", "a/..",   "link/x", "deep/link/x",  "link/../x",         "file/x",
    };
    struct stat st = {0};

    (void)state;
    assert_return_code(mkdirat(dir_fd, "a", 0755), errno);
    assert_return_code(mkdirat(dir_fd, "deep", 0755), errno);
    assert_return_code(land("file", "f", &st), 0);
    assert_return_code(symlinkat("../outside", dir_fd, "link"), errno);
    assert_return_code(symlinkat("../../outside", dir_fd, "deep/link"), errno);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (land(paths[i], "bad", &st) == 0)
            fail_msg("%s was written", paths[i]);
        landing_remove(dir_fd, paths[i], LANDING_FILE);
        landing_remove(dir_fd, paths[i], LANDING_DIRECTORY);
    }
    assert_int_equal(count(outside_fd), 0);
    assert_int_equal(count(world_fd), 2);
    expect_text(dir_fd, "file", "f");
}

static void a_link_is_replaced_and_removed_not_followed(void **state)
{
    struct stat st = {0};

    (void)state;
    assert_return_code(file_write_text(outside_fd, "secret", "s", NULL), 0);
    assert_return_code(symlinkat("../outside/secret", dir_fd, "one"), errno);
    assert_return_code(symlinkat("../outside/secret", dir_fd, "two"), errno);
    assert_return_code(land("one", "mine", &st), 0);
    landing_remove(dir_fd, "two", LANDING_FILE);
    expect_text(outside_fd, "secret", "s");
    expect_text(dir_fd, "one", "mine");
    assert_int_equal(count(dir_fd), 1);
}

static void a_directory_is_never_replaced(void **state)
{
    struct stat st = {0};

    (void)state;
    assert_return_code(land("a/b", "x", &st), 0);
    assert_int_equal(land("a", "y", &st), -1);
    landing_remove(dir_fd, "a", LANDING_FILE);
    landing_remove(dir_fd, "a", LANDING_DIRECTORY); /* it is not empty */
    expect_text(dir_fd, "a/b", "x");
    assert_int_equal(count(dir_fd), 1);
}

static void a_name_may_be_as_long_as_names_are(void **state)
{
    char        name[257];
    struct stat st = {0};

    (void)state;
    memset(name, 'n', sizeof name);
    name[256] = '\0';
    assert_int_equal(land(name, "x", &st), -1);
    name[255] = '\0';
    assert_return_code(land(name, "x", &st), 0);
    assert_int_equal(count(dir_fd), 1);
}

static void it_belongs_to_the_directorys_owner(void **state)
{
    struct stat st = {0};

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_return_code(fchown(dir_fd, 1234, 2345), errno);
    assert_return_code(land("a/b", "x", &st), 0);
    assert_int_equal(st.st_uid, 1234);
    assert_int_equal(st.st_gid, 2345);
    assert_return_code(landing_look(dir_fd, "a", &st), errno);
    assert_int_equal(st.st_uid, 1234);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, remove_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD(a_file_appears_with_its_directories),
        WORLD(one_that_is_replaced_keeps_its_mode),
        WORLD(until_its_end_there_is_nothing_of_it),
        WORLD(no_path_leads_out),
        WORLD(a_link_is_replaced_and_removed_not_followed),
        WORLD(a_directory_is_never_replaced),
        WORLD(a_name_may_be_as_long_as_names_are),
        WORLD(it_belongs_to_the_directorys_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
