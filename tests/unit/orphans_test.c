#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "store/orphans.h"

enum { NOBODY = 65534 };

static const char id[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* A place with a conmon and a podman, which wait, and a runtime that notes what it is called for;
 * an ordinary user's is called through podman. */
struct place {
    char dir[32];
    int  dir_fd;
    int  wait_fds[2]; /* the stdin of who waits */
};

static void put(const struct place *p, const char *name, const char *script)
{
    autofree char *text = str_format("#!/bin/sh\n%s\n", script);

    assert_int_equal(file_write_text(p->dir_fd, name, text, NULL), 0);
    assert_int_equal(fchmodat(p->dir_fd, name, 0755, 0), 0);
}

static int set_up(void **state)
{
    static struct place p;

    p = (struct place){.dir = "/tmp/orphans-XXXXXX"};
    assert_non_null(mkdtemp(p.dir));
    assert_int_equal(chmod(p.dir, 0755), 0);
    p.dir_fd = open(p.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(p.dir_fd >= 0);
    assert_int_equal(pipe2(p.wait_fds, O_CLOEXEC), 0);
    put(&p, "conmon", "read x");
    put(&p, "podman", "[ \"$1\" != unshare ] || { shift; exec \"$@\"; }\nread x");
    put(&p, "runc", "echo \"$@\" >>\"${0%/*}/calls\"");
    setenv("PATH", p.dir, 1);
    *state = &p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    for (const char *const *name =
             (const char *const[]){"conmon", "podman", "runc", "calls", "su/conmon", NULL};
         *name; name++)
        unlinkat(p->dir_fd, *name, 0);
    unlinkat(p->dir_fd, "su", AT_REMOVEDIR);
    close(p->dir_fd);
    close(p->wait_fds[0]);
    close(p->wait_fds[1]);
    return rmdir(p->dir);
}

static bool has_name(pid_t pid, const char *name)
{
    autofree char *path = str_format("/proc/%d/comm", (int)pid), *text = NULL;

    return file_read_text(AT_FDCWD, path, 64, &text, NULL) == 0 &&
           strncmp(text, name, strlen(name)) == 0;
}

/* Whose it is, and in which namespaces. */
struct standing {
    uid_t         uid;
    unsigned long flags;
};

/* Returns when it is that program. */
static pid_t begin(const struct place *p, struct standing s, const char *file,
                   const char *const *argv)
{
    autofree char *path = str_format("%s/%s", p->dir, file);
    const char    *name = strrchr(path, '/') + 1;
    int64_t        end_ms = clock_ms() + 10000;
    pid_t          pid = (pid_t)syscall(SYS_clone, s.flags | SIGCHLD, NULL, NULL, NULL, NULL);

    if (pid == 0) {
        if (s.uid != geteuid() &&
            (setgroups(0, NULL) < 0 || setgid(s.uid) < 0 || setuid(s.uid) < 0))
            _exit(126);
        dup2(p->wait_fds[0], 0);
        execv(path, (char *const *)argv);
        _exit(127);
    }
    while (!has_name(pid, name) && clock_ms() < end_ms)
        poll(NULL, 0, 1);
    assert_true(has_name(pid, name));
    return pid;
}

static struct standing ours(void)
{
    return (struct standing){geteuid(), 0};
}

/* So long a runtime has. */
static int64_t soon(void)
{
    return clock_ms() + 300;
}

static void finish(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static char *calls_of(const struct place *p)
{
    char *text = NULL;

    return file_read_text(p->dir_fd, "calls", 1 << 16, &text, NULL) < 0 ? str_dup("") : text;
}

static void a_runtime_deletes_what_its_conmon_watches(void **state)
{
    struct place     *p = *state;
    autofree char    *runtime = str_dup("/usr/sbin/runc");
    const char *const argv[] = {"conmon",           "-c", id, "-u", id, "-r", runtime, "-n",
                                "jerboa-orphans-1", NULL};
    pid_t             pid = begin(p, ours(), "conmon", argv);
    autofree char    *others = NULL, *calls = NULL, *wanted = str_format("delete %s\n", id);

    assert_true(orphans_end("jerboa-orphans-10", 0));
    assert_true(orphans_end("jerboa-orphan-*", 0));
    others = calls_of(p);
    assert_string_equal(others, "");
    assert_false(
        orphans_end("jerboa-orphans-*", clock_ms() + 2000)); /* it stays, for the runtime is none */
    calls = calls_of(p);
    assert_non_null(strstr(calls, wanted));
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    finish(pid);
    assert_true(orphans_end("jerboa-orphans-*", 0));
}

static void only_a_runtime_that_is_known_is_called_and_for_an_id(void **state)
{
    struct place     *p = *state;
    autofree char    *other = str_format("%s/other", p->dir), *calls = NULL;
    const char *const argvs[][8] = {
        {"conmon", "-c", id, "-r", other, "-n", "jerboa-orphans-1"},
        {"conmon", "-c", "--all", "-r", "runc", "-n", "jerboa-orphans-1"},
    };

    put(p, "other", "echo \"$@\" >>\"${0%/*}/calls\"");
    for (size_t i = 0; i < sizeof argvs / sizeof argvs[0]; i++) {
        pid_t pid = begin(p, ours(), "conmon", argvs[i]);
        assert_false(orphans_end("jerboa-orphans-*", soon()));
        finish(pid);
    }
    calls = calls_of(p);
    assert_string_equal(calls, "");
    unlinkat(p->dir_fd, "other", 0);
}

static void a_client_that_waits_is_killed_when_it_is_late(void **state)
{
    struct place     *p = *state;
    const char *const argv[] = {"podman", "run", "--name=jerboa-orphans-1", NULL};
    pid_t             pid = begin(p, ours(), "podman", argv);
    int               status = 0;

    assert_true(orphans_end("jerboa-orphans-2", 0));
    assert_false(orphans_end("jerboa-orphans-1", 0));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Any user of this machine; code in a container, as root there. */
static void what_others_say_is_not_believed(void **state)
{
    static const struct standing others[] = {{NOBODY, 0}, {0, CLONE_NEWPID}};
    struct place                *p = *state;
    const char *const argv[] = {"conmon", "-c", id, "-r", "runc", "-n", "jerboa-orphans-1", NULL};
    autofree char    *calls = NULL;

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        pid_t pid = begin(p, others[i], "conmon", argv);
        assert_true(orphans_end("jerboa-orphans-*", soon()));
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        finish(pid);
    }
    calls = calls_of(p);
    assert_string_equal(calls, "");
}

/* Its rights are root's while it asks for the password, its name and its words are whose link it
 * was started by. */
static void nobody_becomes_ours_by_a_setuid_program(void **state)
{
    struct place     *p = *state;
    autofree char    *runtime = str_dup("/usr/sbin/runc"), *calls = NULL;
    const char *const argv[] = {"conmon", "--",    "root", "-n", "jerboa-orphans-1",
                                "-r",     runtime, "-c",   id,   NULL};
    struct stat       su;

    if (geteuid() != 0 || stat("/bin/su", &su) < 0 || !(su.st_mode & S_ISUID))
        skip();
    assert_int_equal(mkdirat(p->dir_fd, "su", 0755), 0);
    assert_int_equal(symlinkat("/bin/su", p->dir_fd, "su/conmon"), 0);
    pid_t          pid = begin(p, (struct standing){NOBODY, 0}, "su/conmon", argv);
    autofree char *proc = str_format("/proc/%d", (int)pid);
    assert_int_equal(stat(proc, &su), 0);
    assert_int_equal(su.st_uid, 0); /* else this shows nothing */
    assert_true(orphans_end("jerboa-orphans-*", soon()));
    calls = calls_of(p);
    assert_string_equal(calls, "");
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    finish(pid);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_runtime_deletes_what_its_conmon_watches),
        TEST(only_a_runtime_that_is_known_is_called_and_for_an_id),
        TEST(a_client_that_waits_is_killed_when_it_is_late),
        TEST(what_others_say_is_not_believed),
        TEST(nobody_becomes_ours_by_a_setuid_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
