#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sandbox/mime.h"

#define PNG "\x89PNG\r\n\x1a\n"

static void by_the_name_alone(void **state)
{
    static const char *const cases[][2] = {
        {"a.png", "image/png"},
        {"A.JPG", "image/jpeg"},
        {"dir.png/file", "application/octet-stream"},
        {"dir/x.tar.gz", "application/gzip"},
        {"page.html", "text/html"},
        {".json", "application/octet-stream"}, /* a name, not a suffix */
        {"dir/.png", "application/octet-stream"},
        {"x.", "application/octet-stream"},
        {"x.unheard-of", "application/octet-stream"},
        {"", "application/octet-stream"},
        {"\xff.csv", "text/csv"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(mime_of(cases[i][0], NULL, 0), cases[i][1]);
}

static void bytes_win_over_names(void **state)
{
    static const struct {
        const char *path, *head;
        size_t      size; /* 0: strlen */
        const char *type;
    } cases[] = {
        {"x", PNG "…", 0, "image/png"},
        {"x.txt", PNG, 0, "image/png"},
        {"x.png", "\xff\xd8\xff\xe0", 0, "image/jpeg"},
        {"x", "GIF89a", 0, "image/gif"},
        {"x", "GIF87a", 0, "image/gif"},
        {"x", "GIF88a", 0, "text/plain"},
        {"x", "RIFF\1\2\3\4WEBPVP8 ", 0, "image/webp"},
        {"x.webp", "RIFX\1\2\3\4WEBPVP8 ", 0, "application/octet-stream"},
        {"x.wav", "RIFF\1\2\3\4WAVE", 0, "audio/wav"},
        {"x.png", "\x89PNG\r\n", 0, "application/octet-stream"}, /* not all of its mark */
        {"x.png", "<html>", 0, "text/plain"},
        {"x.html", "<html>", 0, "text/html"},
        {"x.html", "\x00\x01\x02", 3, "application/octet-stream"},
        {"x.json", "{\"a\": \"\xc3\xa4\"}", 0, "application/json"},
        {"x.json", "{\"a\": \"\xe4\"}", 0, "application/octet-stream"}, /* Latin-1 */
        {"x", "cut within a character: \xe2\x82", 0, "text/plain"},
        {"x", "\033[1mbold\033[0m\r\n\t", 0, "text/plain"},
        {"x.pdf", "%PDF-1.7", 0, "application/pdf"},
        {"x.svg", "<svg/>", 0, "image/svg+xml"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t      size = cases[i].size ? cases[i].size : strlen(cases[i].head);
        const char *got = mime_of(cases[i].path, (const uint8_t *)cases[i].head, size);
        if (strcmp(got, cases[i].type) != 0)
            fail_msg("%zu: %s is %s, not %s", i, cases[i].path, got, cases[i].type);
    }
    assert_string_equal(mime_of("empty", (const uint8_t *)"", 0), "text/plain");
    assert_string_equal(mime_of("empty.png", (const uint8_t *)"", 0), "text/plain");
}

static void what_is_text_and_what_is_shown(void **state)
{
    (void)state;
    assert_true(mime_is_text("text/csv"));
    assert_true(mime_is_text("application/json"));
    assert_true(mime_is_text("image/svg+xml"));
    assert_false(mime_is_text("image/png"));
    assert_false(mime_is_text("application/octet-stream"));
    assert_false(mime_is_text("application/jsonx"));
    assert_true(mime_is_image("image/webp"));
    assert_false(mime_is_image("image/svg+xml"));
    assert_false(mime_is_image("image/tiff"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_name_alone),
        cmocka_unit_test(bytes_win_over_names),
        cmocka_unit_test(what_is_text_and_what_is_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
