#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/token.h"

static struct tokens *parse(const char *text, struct err *e)
{
    char          *copy = strdup(text);
    struct tokens *t = tokens_parse(copy, e);

    free(copy);
    return t;
}

static void finds_names(void **state)
{
    struct tokens *t = parse("# who may ask\n"
                             "alice  one\r\n"
                             "\n"
                             "\t bob two   # a remark\n"
                             "alice three", /* a second token of the same person */
                             NULL);

    (void)state;
    assert_non_null(t);
    assert_string_equal(tokens_find(t, "one"), "alice");
    assert_string_equal(tokens_find(t, "two"), "bob");
    assert_string_equal(tokens_find(t, "three"), "alice");
    assert_null(tokens_find(t, ""));
    assert_null(tokens_find(t, "on"));
    assert_null(tokens_find(t, "onee"));
    assert_null(tokens_find(t, "#"));
    tokens_free(t);
}

static void refuses_files(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "no token"},
        {"# nobody\n\n", "no token"},
        {"alice\n", "line 1"},
        {"alice a\nbob b c\n", "line 2"},
        {"alice a\nbob a\n", "line 2"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa a\n", "at most 64"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = {0};
        assert_null(parse(rows[i].text, &e));
        if (!strstr(e.msg, rows[i].says))
            fail_msg("'%s' says: %s", rows[i].text, e.msg);
    }
}

static void wipes_the_text(void **state)
{
    char           text[] = "alice secret";
    struct tokens *t = tokens_parse(text, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        assert_int_equal(text[i], 0);
    tokens_free(t);
}

static void wants_a_private_file(void **state)
{
    char           path[] = "/tmp/token_test.XXXXXX";
    int            fd = mkstemp(path);
    struct err     e = {0};
    struct tokens *t;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "alice a\n", 8), 8);
    fchmod(fd, 0640);
    assert_null(tokens_load(path, &e));
    assert_non_null(strstr(e.msg, "chmod 600"));
    assert_non_null(strstr(e.msg, path));
    fchmod(fd, 0400);
    t = tokens_load(path, &e);
    assert_non_null(t);
    tokens_free(t);
    unlink(path);
    close(fd);
    assert_null(tokens_load(path, &e));
}

static void reads_headers(void **state)
{
    (void)state;
    assert_string_equal(token_of_header("Bearer abc"), "abc");
    assert_string_equal(token_of_header("bearer   abc"), "abc");
    assert_null(token_of_header(NULL));
    assert_null(token_of_header(""));
    assert_null(token_of_header("Bearer"));
    assert_null(token_of_header("Bearer "));
    assert_null(token_of_header("Basic abc"));
    assert_null(token_of_header("Bearerabc"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_names),    cmocka_unit_test(refuses_files),
        cmocka_unit_test(wipes_the_text), cmocka_unit_test(wants_a_private_file),
        cmocka_unit_test(reads_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
