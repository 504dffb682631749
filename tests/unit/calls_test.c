/* The filter is for good, so each case is a child. It must not need more than its table allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/calls.h"

/* 0, or the errno of the call. */
typedef int attempt(void);

static int of(const struct call *calls, size_t n, attempt *try)
{
    pid_t pid = fork();
    int   status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        _exit(calls_allow(calls, n, NULL) < 0 ? 255 : try());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int reading(void)
{
    return read(-1, NULL, 0) < 0 ? errno : 0; /* the kernel's own answer is EBADF */
}

static int asking_who(void)
{
    return syscall(SYS_getppid) < 0 ? errno : 0;
}

static int tcp(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? errno : 0;
}

static int udp(void)
{
    return socket(AF_INET, SOCK_DGRAM, 0) < 0 ? errno : 0;
}

static int local(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
}

/* The kernel looks at the low half of a family. */
static int tcp_by_a_long_number(void)
{
    return syscall(SYS_socket, AF_INET | 1L << 32, SOCK_STREAM, 0) < 0 ? errno : 0;
}

static const struct call table[] = {
    CALL_IF(socket, {0, -1, AF_INET}, {1, 0xf, SOCK_STREAM}),
    CALL_IF(socket, {0, -1, AF_INET6}),
    CALL(read),
    CALL(exit_group),
    CALL(sigaltstack), /* of a sanitizer, at the end */
};
enum { ROWS = sizeof table / sizeof table[0] };

static void test_what_a_row_names_passes(void **state)
{
    (void)state;
    assert_int_equal(of(table, ROWS, reading), EBADF);
    assert_int_equal(of(table, ROWS, tcp), 0);
    assert_int_equal(of(table, ROWS, tcp_by_a_long_number), 0);
}

static void test_what_no_row_names_is_unknown(void **state)
{
    (void)state;
    assert_int_equal(of(table, ROWS, asking_who), ENOSYS);
}

static void test_all_tests_of_a_row_must_hold(void **state)
{
    (void)state;
    assert_int_equal(of(table, ROWS, udp), ENOSYS);
    assert_int_equal(of(table, ROWS, local), ENOSYS);
}

static void test_rows_behind_one_that_did_not_decide_count(void **state)
{
    static const struct call two[] = {CALL_IF(socket, {0, -1, AF_UNIX}),
                                      CALL_IF(socket, {0, -1, AF_INET}), CALL(exit_group),
                                      CALL(sigaltstack)};

    (void)state;
    assert_int_equal(of(two, sizeof two / sizeof two[0], tcp), 0);
    assert_int_equal(of(two, sizeof two / sizeof two[0], local), 0);
    assert_int_equal(of(two, sizeof two / sizeof two[0], reading), ENOSYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_row_names_passes),
        cmocka_unit_test(test_what_no_row_names_is_unknown),
        cmocka_unit_test(test_all_tests_of_a_row_must_hold),
        cmocka_unit_test(test_rows_behind_one_that_did_not_decide_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
