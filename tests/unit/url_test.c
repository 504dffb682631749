#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/url.h"

static void test_good(void **state)
{
    static const struct {
        const char *text, *shown;
        bool        is_loopback;
    } list[] = {
        {"https://Registry.Example/", "https://registry.example/", false},
        {"https://registry.example", "https://registry.example/", false},
        {"https://registry.example:443/a/b", "https://registry.example/a/b", false},
        {"http://registry.example:443/", "http://registry.example:443/", false},
        {"http://user:secret@registry.example:8080/x?q#f", "http://registry.example:8080/x", false},
        {"http://127.0.0.1:4873/", "http://127.0.0.1:4873/", true},
        {"http://[::1]:4873/", "http://[::1]:4873/", true},
        {"https://[2606:4700::1]/", "https://[2606:4700::1]/", false},
        {"http://localhost", "http://localhost/", true},
        {"https://a.example/.well-known/..x/", "https://a.example/.well-known/..x/", false},
    };
    char       shown[256];
    struct url u;

    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        assert_int_equal(url_parse(list[i].text, &u, NULL), 0);
        url_show(&u, shown, sizeof shown);
        assert_string_equal(shown, list[i].shown);
        assert_int_equal(u.is_loopback, list[i].is_loopback);
    }
}

static void test_bad(void **state)
{
    static const char *const list[] = {
        "",
        "registry.example",
        "ftp://a.example/",
        "https:/a.example/",
        "https:///a.example/",
        "https://",
        "https://:80/",
        "https://a.example:0/",
        "https://a.example:65536/",
        "https://a.example:80x/",
        "https://a.example:/",
        "https://a b/",
        "https://a.example\\@evil.example/",
        "https://x@y@a.example/",
        "https://a%2eexample/",
        "https://\xc3\xa4.example/",
        "https://[::1/",
        "https://[::g]/",
        "https://[]/",
        "https://a.example/../x",
        "https://a.example/x/.",
        NULL,
    };
    struct url u;

    (void)state;
    for (const char *const *text = list; *text; text++)
        assert_int_equal(url_parse(*text, &u, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_good), cmocka_unit_test(test_bad)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
