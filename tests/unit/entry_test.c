#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/entry.h"

static char parent_path[64];
static int  parent_fd = -1;

static int count_names(void)
{
    DIR *dir = opendir(parent_path);
    int  n = 0;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

static void fill(struct entry *entry)
{
    assert_int_equal(mkdirat(entry->dir_fd, "bin", 0755), 0);
    assert_int_equal(file_write_text(entry->dir_fd, "bin/node", "x", NULL), 0);
    assert_int_equal(symlinkat("/", entry->dir_fd, "root"), 0);
}

/* "bad" in it makes an entry a damaged one. */
static int is_sound(int dir_fd, const void *arg, struct err *e)
{
    (void)arg;
    if (faccessat(dir_fd, "bad", F_OK, 0) == 0)
        return err_set(e, ERR_INVALID, "bad");
    return 0;
}

static void test_commit(void **state)
{
    struct entry entry;

    (void)state;
    assert_int_equal(entry_begin(parent_fd, "a", is_sound, NULL, &entry, NULL), 0);
    fill(&entry);
    assert_int_equal(faccessat(parent_fd, "a", F_OK, 0), -1);
    assert_int_equal(entry_commit(&entry, NULL), 0);
    assert_int_equal(faccessat(parent_fd, "a/bin/node", F_OK, 0), 0);
    assert_int_equal(entry_begin(parent_fd, "a", is_sound, NULL, &entry, NULL), 1);
    assert_int_equal(count_names(), 1);
}

static void test_damaged_is_replaced(void **state)
{
    struct entry entry;
    struct err   e = {0};

    (void)state;
    assert_int_equal(entry_look(parent_fd, "a", is_sound, NULL, &e), 0);
    assert_int_equal(mkdirat(parent_fd, "a", 0755), 0);
    assert_int_equal(entry_look(parent_fd, "a", is_sound, NULL, &e), 1);
    assert_int_equal(mkdirat(parent_fd, "a/bad", 0755), 0);
    assert_int_equal(entry_look(parent_fd, "a", is_sound, NULL, &e), -1);
    assert_string_equal(e.msg, "bad");
    assert_int_equal(entry_begin(parent_fd, "a", is_sound, NULL, &entry, NULL), 0);
    fill(&entry);
    assert_int_equal(faccessat(parent_fd, "a/bad", F_OK, 0), 0); /* until the last moment */
    assert_int_equal(entry_commit(&entry, NULL), 0);
    assert_int_equal(faccessat(parent_fd, "a/bad", F_OK, 0), -1);
    assert_int_equal(faccessat(parent_fd, "a/bin/node", F_OK, 0), 0);
    assert_int_equal(entry_begin(parent_fd, "a", is_sound, NULL, &entry, NULL), 1);
    assert_int_equal(count_names(), 1);
}

static void test_no_directory_is_replaced(void **state)
{
    struct entry entry;
    struct err   e = {0};

    (void)state;
    for (int is_link = 0; is_link < 2; is_link++) {
        if (is_link)
            assert_int_equal(symlinkat("nowhere", parent_fd, "b"), 0);
        else
            assert_int_equal(file_write_text(parent_fd, "b", "x", NULL), 0);
        assert_int_equal(entry_look(parent_fd, "b", is_sound, NULL, &e), -1);
        assert_string_equal(e.msg, "it is no directory");
        assert_int_equal(entry_begin(parent_fd, "b", is_sound, NULL, &entry, NULL), 0);
        fill(&entry);
        assert_int_equal(entry_commit(&entry, NULL), 0);
        assert_int_equal(faccessat(parent_fd, "b/bin/node", F_OK, 0), 0);
        assert_int_equal(count_names(), 1);
        assert_int_equal(unlinkat(parent_fd, "b/bin/node", 0), 0);
        assert_int_equal(unlinkat(parent_fd, "b/bin", AT_REMOVEDIR), 0);
        assert_int_equal(unlinkat(parent_fd, "b/root", 0), 0);
        assert_int_equal(unlinkat(parent_fd, "b", AT_REMOVEDIR), 0);
    }
}

static void test_abort(void **state)
{
    struct entry entry;

    (void)state;
    assert_int_equal(entry_begin(parent_fd, "a", is_sound, NULL, &entry, NULL), 0);
    fill(&entry);
    entry_abort(&entry);
    assert_int_equal(count_names(), 0);
}

/* A child that holds the entry, half-written; it says so through the pipe and waits to be killed,
 * or, when it reads a byte, ends it by `end`. */
static pid_t hold(const char *name, int end_fd)
{
    int   ready[2];
    char  byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        struct entry entry;
        if (entry_begin(parent_fd, name, is_sound, NULL, &entry, NULL) != 0)
            _exit(1);
        mkdirat(entry.dir_fd, "bin", 0755);
        if (write(ready[1], "", 1) != 1 || read(end_fd, &byte, 1) != 1)
            _exit(1);
        _exit(entry_commit(&entry, NULL) == 0 ? 0 : 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void test_killed_writer(void **state)
{
    int          end[2];
    struct entry entry;

    (void)state;
    assert_int_equal(pipe(end), 0);
    for (int i = 0; i < 2; i++) {
        pid_t pid = hold(i ? "b" : "a", end[0]);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    assert_int_equal(count_names(), 2);
    assert_int_equal(entry_begin(parent_fd, "a", is_sound, NULL, &entry, NULL), 0);
    assert_int_equal(mkdirat(entry.dir_fd, "bin", 0755), 0); /* it was emptied */
    entry_sweep(parent_fd);                                  /* b goes, ours is held and stays */
    assert_int_equal(count_names(), 1);
    assert_int_equal(entry_commit(&entry, NULL), 0);
    assert_int_equal(count_names(), 1);
    close(end[0]);
    close(end[1]);
}

static void test_second_waits(void **state)
{
    int          end[2], status;
    pid_t        first, second;
    struct entry entry;

    (void)state;
    assert_int_equal(pipe(end), 0);
    first = hold("a", end[0]);
    second = fork();
    if (second == 0)
        _exit(entry_begin(parent_fd, "a", is_sound, NULL, &entry, NULL) == 1 ? 0 : 1);
    assert_int_equal(write(end[1], "", 1), 1);
    assert_int_equal(waitpid(first, &status, 0), first);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(second, &status, 0), second);
    assert_int_equal(status, 0);
    assert_int_equal(count_names(), 1);
    close(end[0]);
    close(end[1]);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(parent_path, "/tmp/jerboa-entry-XXXXXX");
    if (!mkdtemp(parent_path))
        return -1;
    parent_fd = open(parent_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return parent_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    char command[80];

    (void)state;
    fd_close(&parent_fd);
    snprintf(command, sizeof command, "rm -rf %s", parent_path);
    return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_commit), TEST(test_damaged_is_replaced), TEST(test_no_directory_is_replaced),
        TEST(test_abort),  TEST(test_killed_writer),       TEST(test_second_waits),
    };

    alarm(60); /* a lock that is never had must not hang the suite */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
