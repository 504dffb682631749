/* Sockets that are really bound; what an address may look like is in origin_test.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "transport/address.h"

struct place {
    char           directory[32], path[64];
    struct address address;
};

static bool cannot_listen;

int __real_listen(int fd, int backlog);
int __wrap_listen(int fd, int backlog);

int __wrap_listen(int fd, int backlog)
{
    if (!cannot_listen)
        return __real_listen(fd, backlog);
    errno = ENOBUFS;
    return -1;
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct err    e = {0};
    char          text[80];

    strcpy(p->directory, "/tmp/address_test.XXXXXX");
    assert_non_null(mkdtemp(p->directory));
    snprintf(p->path, sizeof p->path, "%s/s", p->directory);
    snprintf(text, sizeof text, "unix:%s", p->path);
    assert_int_equal(address_parse(text, &p->address, &e), 0);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    unlink(p->path);
    rmdir(p->directory);
    free(p);
    return 0;
}

static int connect_to(const struct address *a)
{
    int fd = socket(a->to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, &a->to.any, a->size) < 0)
        fd_close(&fd);
    return fd;
}

static void is_private(void **state)
{
    struct place *p = *state;
    struct err    e = {0};
    mode_t        mask = umask(0);
    autofd int    fd = address_listen(&p->address, &e), client = -1;
    struct stat   st;

    assert_true(fd >= 0);
    assert_int_equal(lstat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(umask(mask), 0); /* as it was */
    client = connect_to(&p->address);
    assert_true(client >= 0);
    address_unlink(&p->address);
    assert_int_equal(lstat(p->path, &st), -1);
}

static void replaces_what_nobody_serves(void **state)
{
    struct place  *p = *state;
    struct err     e = {0};
    struct address again = p->address;
    int            fd = address_listen(&p->address, &e);
    struct stat    st;

    assert_true(fd >= 0);
    assert_int_equal(address_listen(&again, &e), -1);
    assert_non_null(strstr(e.msg, "another program"));
    fd_close(&fd); /* as if it had died */
    fd = address_listen(&again, &e);
    assert_true(fd >= 0);
    address_unlink(&again);
    assert_int_equal(lstat(p->path, &st), -1);
    fd_close(&fd);
}

static void leaves_the_socket_of_another(void **state)
{
    struct place  *p = *state;
    struct err     e = {0};
    struct address other = p->address;
    autofd int     fd = address_listen(&p->address, &e), other_fd = -1;
    struct stat    st;

    assert_true(fd >= 0);
    assert_int_equal(unlink(p->path), 0);
    other_fd = address_listen(&other, &e);
    assert_true(other_fd >= 0);
    address_unlink(&p->address);
    assert_int_equal(lstat(p->path, &st), 0);
}

static void leaves_other_files_alone(void **state)
{
    struct place *p = *state;
    struct err    e = {0};
    FILE         *file = fopen(p->path, "w");

    assert_non_null(file);
    fclose(file);
    assert_int_equal(address_listen(&p->address, &e), -1);
    assert_non_null(strstr(e.msg, "no socket"));
    assert_int_equal(access(p->path, F_OK), 0);
}

static void says_why_it_cannot_bind(void **state)
{
    struct place *p = *state;
    struct err    e = {0};

    rmdir(p->directory);
    assert_int_equal(address_listen(&p->address, &e), -1);
    assert_non_null(strstr(e.msg, p->path));
}

static void tells_the_port(void **state)
{
    struct address a, same;
    struct err     e = {0};
    autofd int     fd = -1, client = -1;

    (void)state;
    assert_int_equal(address_parse("127.0.0.1:0", &a, &e), 0);
    fd = address_listen(&a, &e);
    assert_true(fd >= 0);
    client = connect_to(&a);
    assert_true(client >= 0);
    same = a;
    assert_int_equal(address_listen(&same, &e), -1);
    autofree char *url = address_url(&a);
    assert_non_null(strstr(e.msg, url));
    assert_null(strstr(url, ":0/"));
    address_unlink(&a);
}

static void leaves_nothing_when_it_cannot_listen(void **state)
{
    struct place *p = *state;
    struct err    e = {0};

    cannot_listen = true;
    assert_int_equal(address_listen(&p->address, &e), -1);
    cannot_listen = false;
    assert_int_equal(e.sys, ENOBUFS);
    assert_int_equal(access(p->path, F_OK), -1);
}

static void paths_that_are_too_long(void **state)
{
    struct address a;
    struct err     e = {0};
    char           text[200] = "unix:";

    (void)state;
    memset(text + 5, 'x', 107);
    assert_int_equal(address_parse(text, &a, &e), 0);
    memset(text + 5, 'x', 108);
    assert_int_equal(address_parse(text, &a, &e), -1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(is_private),
        CASE(replaces_what_nobody_serves),
        CASE(leaves_the_socket_of_another),
        CASE(leaves_other_files_alone),
        CASE(says_why_it_cannot_bind),
        CASE(leaves_nothing_when_it_cannot_listen),
        cmocka_unit_test(tells_the_port),
        cmocka_unit_test(paths_that_are_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
