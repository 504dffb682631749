#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include <string.h>

#include "base/fd.h"
#include "tools/file_uri.h"

static const char dir[] = "/home/ada/my files";

static void names_of_files(void **state)
{
    static const struct {
        const char *path, *uri;
    } cases[] = {
        {"a.txt", "file:///home/ada/my%20files/a.txt"},
        {"sub/b c.txt", "file:///home/ada/my%20files/sub/b%20c.txt"},
        {"50%.txt", "file:///home/ada/my%20files/50%25.txt"},
        {"q?x#y", "file:///home/ada/my%20files/q%3Fx%23y"},
        {"\xc3\xa9", "file:///home/ada/my%20files/%C3%A9"},
        {"\xff\n", "file:///home/ada/my%20files/%FF%0A"},
        {"-_.~", "file:///home/ada/my%20files/-_.~"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autofree char *uri = file_uri_of(dir, "ID", cases[i].path);
        autofree char *back = file_uri_below(cases[i].uri, dir);
        assert_string_equal(uri, cases[i].uri);
        assert_string_equal(back, cases[i].path);
    }
}

static void every_byte_comes_back(void **state)
{
    char name[2] = {0};

    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        autofree char *uri = NULL, *back = NULL;
        name[0] = (char)byte;
        uri = file_uri_on_host("/d", name);
        back = file_uri_below(uri, "/d");
        assert_string_equal(back, name);
    }
}

/* As long as paths can be: code in a sandbox chooses the second. */
static void the_longest_paths_have_room(void **state)
{
    char long_dir[4096], long_path[4096];

    (void)state;
    memset(long_dir, '\xff', sizeof long_dir - 1);
    memset(long_path, '\xff', sizeof long_path - 1);
    long_dir[0] = '/';
    long_dir[sizeof long_dir - 1] = long_path[sizeof long_path - 1] = '\0';
    for (size_t n = strlen(long_path); n > 4080; n--) {
        autofree char *uri = NULL, *back = NULL, *inside = NULL;
        long_path[n] = '\0';
        uri = file_uri_on_host(n % 2 ? long_dir : "/d", long_path);
        back = file_uri_below(uri, n % 2 ? long_dir : "/d");
        inside = file_uri_in_box("js-sbx-00000000-0000-4000-8000-000000000000", long_path);
        assert_string_equal(back, long_path);
        assert_int_equal(strlen(inside), strlen("sandbox://js-sbx-/") + 36 + 3 * n);
    }
}

static void files_of_a_sandbox(void **state)
{
    autofree char *file = file_uri_of(NULL, "js-sbx-1", "a b"),
                  *log = file_uri_in_box("js-sbx-1", "output.log");

    (void)state;
    assert_string_equal(file, "sandbox://js-sbx-1/files/a%20b");
    assert_string_equal(log, "sandbox://js-sbx-1/output.log");
}

static void what_is_not_below(void **state)
{
    static const char *const cases[] = {
        "",
        "file://",
        "file:///",
        "file:///d",
        "file:///d/",
        "file:///dx/a",
        "file:///etc/passwd",
        "file://host/d/a",
        "http:///d/a",
        "/d/a",
        "file:/d/a",
        "file:///d/%",
        "file:///d/%4",
        "file:///d/%zz",
        "file:///d/a%00b",
        "FILE:///x/a",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        autofree char *path = file_uri_below(cases[i], "/d");
        assert_null(path);
    }
}

/* It only decodes: whoever opens it stays below by openat2, which a unit test of files shows. */
static void dots_are_left_to_who_opens(void **state)
{
    autofree char *path = file_uri_below("file:///d/..%2F../etc", "/d");

    (void)state;
    assert_string_equal(path, "../../etc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_files),
        cmocka_unit_test(every_byte_comes_back),
        cmocka_unit_test(the_longest_paths_have_room),
        cmocka_unit_test(files_of_a_sandbox),
        cmocka_unit_test(what_is_not_below),
        cmocka_unit_test(dots_are_left_to_who_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
