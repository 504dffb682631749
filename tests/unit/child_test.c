#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "loop/child.h"

struct owner {
    struct event_base *base;
    struct child       child;
    int                exits, status;
};

static void on_exited(void *arg, int status)
{
    struct owner *o = arg;

    o->exits++;
    o->status = status;
}

static int set_up(void **state)
{
    static struct owner o;

    o = (struct owner){.base = event_base_new()};
    *state = &o;
    return 0;
}

static int tear_down(void **state)
{
    struct owner *o = *state;

    child_done(&o->child);
    child_done(&o->child);
    event_base_free(o->base);
    return 0;
}

static void start(struct owner *o, const char *script, const struct child_fd *fds)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct err  e = {0};

    if (child_start(&o->child, o->base, "/bin/sh", argv, NULL, fds, on_exited, o, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(o->exits, 0);
}

static const struct child_fd no_fds[] = {{-1, -1}};

static void it_starts_where_it_is_told(void **state)
{
    struct owner         *o = *state;
    int                   directory = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct child_fd fds[] = {{directory, CHILD_DIRECTORY}, {-1, -1}};

    start(o, "test \"$(pwd)\" = /proc", fds);
    event_base_dispatch(o->base);
    assert_int_equal(o->exits, 1);
    assert_int_equal(o->status, 0);
    close(directory);
}

static void an_exit_is_reported_once(void **state)
{
    struct owner *o = *state;
    pid_t         pid;

    start(o, "exit 3", no_fds);
    pid = o->child.pid;
    event_base_dispatch(o->base);
    assert_int_equal(o->exits, 1);
    assert_true(WIFEXITED(o->status));
    assert_int_equal(WEXITSTATUS(o->status), 3);
    assert_int_equal(o->child.pid, 0);
    assert_int_equal(waitpid(pid, NULL, 0), -1); /* it was reaped */
    child_kill(&o->child);                       /* nobody is hit */
}

static void a_killed_child_is_reported_too(void **state)
{
    struct owner *o = *state;

    start(o, "while :; do read x; done </dev/zero", no_fds);
    child_kill(&o->child);
    child_kill(&o->child);
    event_base_dispatch(o->base);
    assert_int_equal(o->exits, 1);
    assert_true(WIFSIGNALED(o->status));
    assert_int_equal(WTERMSIG(o->status), SIGKILL);
}

/* No environment, a session of its own, no blocked or ignored signals, no descriptor but those of
 * the table. */
static void it_gets_what_it_is_given(void **state)
{
    struct owner  *o = *state;
    int            ends[2], leak = open("/dev/null", O_RDONLY | O_CLOEXEC);
    autofree char *text = NULL;
    sigset_t       usr1;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    setenv("SECRET", "x", 1);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    start(o,
          "echo \"$SECRET|$(cut -d' ' -f6 /proc/$$/stat) $$|$(sed -n s/SigBlk:.//p "
          "/proc/$$/status)|$(sed -n s/SigIgn:.//p /proc/$$/status)|\"; "
          "for fd in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$fd ] && echo leak $fd; done; :",
          (struct child_fd[]){{ends[1], 1}, {-1, -1}});
    sigprocmask(SIG_UNBLOCK, &usr1, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    close(ends[1]);
    event_base_dispatch(o->base);
    assert_int_equal(o->status, 0);
    assert_int_equal(fd_read_text(ends[0], 1000, &text, NULL, NULL), 0);

    char expected[100];
    long session = strtol(text + 1, NULL, 10);
    snprintf(expected, sizeof expected, "|%ld %ld|0000000000000000|%016llx|\n", session, session,
             3ULL << 31); /* libc ignores two signals of its own, 32 and 33 */
    assert_string_equal(text, expected);
    assert_int_not_equal(session, getsid(0));
    close(ends[0]);
    close(leak);
}

static void descriptors_may_stay_where_they_are(void **state)
{
    struct owner *o = *state;
    int           ends[2];
    char          byte = 0;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int fd = fcntl(ends[1], F_DUPFD_CLOEXEC, 9); /* dash knows one digit */
    assert_int_equal(fd, 9);
    start(o, "printf x >&9", (struct child_fd[]){{9, 9}, {-1, -1}});
    event_base_dispatch(o->base);
    assert_int_equal(o->status, 0);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

static void a_missing_program_is_an_error(void **state)
{
    struct owner *o = *state;
    const char   *argv[] = {"x", NULL};
    struct err    e = {0};

    assert_int_equal(
        child_start(&o->child, o->base, "/nowhere/x", argv, NULL, no_fds, on_exited, o, &e), -1);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.msg, "start /nowhere/x: No such file or directory");
    event_base_dispatch(o->base);
    assert_int_equal(o->exits, 0);
}

static void a_wait_ends_with_it_or_with_its_time(void **state)
{
    struct owner *o = *state;
    int           ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    start(o, "read x", (struct child_fd[]){{ends[0], 0}, {-1, -1}});
    assert_false(child_wait(&o->child, 1));
    assert_false(child_wait(&o->child, 0));
    close(ends[0]);
    close(ends[1]); /* so it ends */
    assert_true(child_wait(&o->child, 60000));
    assert_int_equal(o->child.pid, 0);
    assert_true(child_wait(&o->child, 0)); /* it has */
    assert_int_equal(o->exits, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_starts_where_it_is_told),           TEST(an_exit_is_reported_once),
        TEST(a_killed_child_is_reported_too),       TEST(it_gets_what_it_is_given),
        TEST(descriptors_may_stay_where_they_are),  TEST(a_missing_program_is_an_error),
        TEST(a_wait_ends_with_it_or_with_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
