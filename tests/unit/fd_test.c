#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

static int file_of(size_t size)
{
    int fd = memfd_create("text", MFD_CLOEXEC);

    for (size_t i = 0; i < size; i++)
        assert_int_equal(fd_write_all(fd, &"0123456789"[i % 10], 1), 0);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void close_and_take_forget(void **state)
{
    int fd = file_of(0), none = -1;

    (void)state;
    errno = ENOTTY;
    fd_close(&none);
    int taken = take_fd(&fd);
    assert_int_equal(fd, -1);
    assert_int_equal(fcntl(taken, F_GETFD), FD_CLOEXEC);
    int copy = taken;
    fd_close(&taken);
    assert_int_equal(taken, -1);
    assert_int_equal(errno, ENOTTY);
    assert_int_equal(fcntl(copy, F_GETFD), -1);
}

static void text_is_read_up_to_the_cap(void **state)
{
    static const struct {
        size_t size, max;
        bool   fits;
    } cases[] = {
        {0, 0, true},         {1, 0, false},         {10, 10, true},          {11, 10, false},
        {4095, 4095, true},   {4096, 4096, true},    {4097, 4097, true},      {8192, 8191, false},
        {20000, 20000, true}, {20001, 20000, false}, {20000, SIZE_MAX, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autofd int     fd = file_of(cases[i].size);
        autofree char *text = NULL;
        size_t         size = 77;
        struct err     e = {0};
        int            r = fd_read_text(fd, cases[i].max, &text, &size, &e);

        assert_int_equal(r, cases[i].fits ? 0 : -1);
        if (cases[i].fits) {
            assert_int_equal(size, cases[i].size);
            assert_int_equal(strlen(text), size);
        } else {
            assert_int_equal(e.kind, ERR_LIMIT);
            assert_null(text);
        }
    }
}

static void files_are_named_in_errors(void **state)
{
    char           dir[] = "/tmp/fd_test.XXXXXX";
    autofree char *text = NULL;
    struct err     e = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    autofd int dir_fd = open(dir, O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(file_write_text(dir_fd, "a", "one\ntwo\n", &e), 0);
    assert_int_equal(file_write_text(dir_fd, "a", "three\n", &e), 0);
    assert_int_equal(file_read_text(dir_fd, "a", 6, &text, &e), 0);
    assert_string_equal(text, "three\n");
    assert_int_equal(file_read_text(dir_fd, "a", 5, &text, &e), -1);
    assert_string_equal(e.msg, "a: longer than 5 bytes");
    assert_int_equal(file_read_text(dir_fd, "b", 5, &text, &e), -1);
    assert_string_equal(e.msg, "b: No such file or directory");
    assert_int_equal(file_write_text(dir_fd, "no/b", "", &e), -1);
    assert_int_equal(e.sys, ENOENT);
    assert_int_equal(file_read_text(dir_fd, ".", 5, &text, &e), -1);
    assert_int_equal(e.sys, EISDIR);
    unlinkat(dir_fd, "a", 0);
    rmdir(dir);
}

static void nonblock_is_switched(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fd_set_nonblock(ends[0], true), 0);
    assert_true(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(fd_set_nonblock(ends[0], false), 0);
    assert_false(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    fd_close(&ends[0]);
    fd_close(&ends[1]);
    assert_int_equal(fd_set_nonblock(ends[0], true), -1);
}

/* One event is one line, whatever it quotes; what is above the level is dropped. */
static void log_lines_are_lines(void **state)
{
    autofd int     fd = file_of(0), saved = fcntl(2, F_DUPFD_CLOEXEC, 3);
    autofree char *text = NULL;
    char           longest[2000];

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    dup2(fd, 2);
    log_line(LOG_INFO, "test", "not yet");
    log_line(LOG_WARN, "test", "two\nlines \x1b[31m%d", 1);
    log_set_level(LOG_INFO);
    log_line(LOG_INFO, "test", "%s", longest);
    dup2(saved, 2);
    lseek(fd, 0, SEEK_SET);
    assert_int_equal(fd_read_text(fd, 4096, &text, NULL, NULL), 0);
    assert_memory_equal(text, "warn test two lines  [31m1\ninfo test xxx", 40);
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_in_range(strlen(text), 1000, 1060);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_and_take_forget),     cmocka_unit_test(text_is_read_up_to_the_cap),
        cmocka_unit_test(files_are_named_in_errors), cmocka_unit_test(nonblock_is_switched),
        cmocka_unit_test(log_lines_are_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
