/* What programs in a container find in their environment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "init/inherit.h"

static const char *find(const char *const *env, const char *name)
{
    const char *found = NULL;

    for (; *env; env++)
        if (strncmp(*env, name, strlen(name)) == 0 && (*env)[strlen(name)] == '=') {
            assert_null(found); /* each name once */
            found = *env + strlen(name) + 1;
        }
    return found;
}

static const char *const given[] = {"HOME=/root", "SAME=ours", NULL};

static void nothing_is_inherited_before(void **state)
{
    autofree const char **env = inherit_compose(given);

    (void)state;
    assert_string_equal(env[0], given[0]);
    assert_string_equal(env[1], given[1]);
    assert_null(env[2]);
}

static void ours_win_and_the_rest_is_the_image_s(void **state)
{
    struct err e = {0};

    (void)state;
    clearenv();
    setenv("HOME", "/nowhere", 1);
    setenv("SAME", "its", 1);
    setenv("SAME_NOT", "its", 1);
    setenv("PATH", "/of/the/image", 1);
    assert_int_equal(inherit_begin(&e), 0);
    autofree const char **env = inherit_compose(given);
    assert_string_equal(find(env, "HOME"), "/root");
    assert_string_equal(find(env, "SAME"), "ours");
    assert_string_equal(find(env, "SAME_NOT"), "its");
    assert_string_equal(find(env, "PATH"), "/of/the/image");
    assert_string_equal(find(env, "LANG"), "C.UTF-8");
}

static void the_order_is_always_the_same(void **state)
{
    static const char *const none[] = {NULL};
    struct err               e = {0};

    (void)state;
    clearenv();
    setenv("Z", "1", 1);
    setenv("LANG", "C", 1);
    setenv("PATH", "/bin", 1);
    setenv("A", "1", 1);
    assert_int_equal(inherit_begin(&e), 0);
    autofree const char **env = inherit_compose(none);
    assert_string_equal(env[0], "A=1");
    assert_string_equal(env[1], "LANG=C");
    assert_string_equal(env[2], "PATH=/bin");
    assert_string_equal(env[3], "Z=1");
    assert_null(env[4]);
}

static void an_image_without_any(void **state)
{
    static const char *const none[] = {NULL};
    struct err               e = {0};

    (void)state;
    clearenv();
    assert_int_equal(inherit_begin(&e), 0);
    autofree const char **env = inherit_compose(none);
    assert_non_null(strstr(find(env, "PATH"), "/usr/bin"));
    assert_null(find(env, "HOME"));
}

static void proxies_are_nobody_s_but_the_user_s(void **state)
{
    static const char *const own[] = {"HTTPS_PROXY=ours", NULL};
    static const char *const names[] = {"HTTP_PROXY", "http_proxy", "https_proxy",
                                        "FTP_PROXY",  "ftp_proxy",  "ALL_PROXY",
                                        "all_proxy",  "NO_PROXY",   "no_proxy"};
    struct err               e = {0};

    (void)state;
    clearenv();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        setenv(names[i], "http://user:secret@there", 1);
    setenv("HTTPS_PROXY", "http://user:secret@there", 1);
    setenv("HTTP_PROXY_NOT", "its", 1);
    assert_int_equal(inherit_begin(&e), 0);
    autofree const char **env = inherit_compose(own);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_null(find(env, names[i]));
    assert_string_equal(find(env, "HTTPS_PROXY"), "ours");
    assert_string_equal(find(env, "HTTP_PROXY_NOT"), "its");
}

static void what_podman_adds_is_not_the_image_s(void **state)
{
    static const char *const none[] = {NULL};
    struct err               e = {0};

    (void)state;
    clearenv();
    setenv("TERM", "xterm", 1);
    setenv("container", "podman", 1);
    assert_int_equal(inherit_begin(&e), 0);
    autofree const char **env = inherit_compose(none);
    assert_null(find(env, "TERM"));
    assert_null(find(env, "container"));
    setenv("TERM", "dumb", 1);
    setenv("container", "oci", 1);
    assert_int_equal(inherit_begin(&e), 0);
    autofree const char **other = inherit_compose(none);
    assert_string_equal(find(other, "TERM"), "dumb");
    assert_string_equal(find(other, "container"), "oci");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_inherited_before),
        cmocka_unit_test(ours_win_and_the_rest_is_the_image_s),
        cmocka_unit_test(the_order_is_always_the_same),
        cmocka_unit_test(an_image_without_any),
        cmocka_unit_test(proxies_are_nobody_s_but_the_user_s),
        cmocka_unit_test(what_podman_adds_is_not_the_image_s),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
