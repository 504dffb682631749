#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

#define ONE "one-0123456789ab"
#define TWO "two#0123456789ab"
#define THREE "three-0123456789ab"

static const char *name_of(const struct tokens *t, const char *token)
{
    struct principal *found = tokens_find(t, token);

    return found ? found->name : "(none)";
}

static void finds_names(void **state)
{
    struct tokens *t = parse("# who may ask\n"
                             "bob  " ONE "\r\n"
                             "\n"
                             "\t alice " TWO "   # a remark\n"
                             "  # " THREE " no-token-0123456789\n"
                             "bob " THREE "\t#", /* a second token of the same person */
                             NULL);

    (void)state;
    assert_non_null(t);
    assert_string_equal(name_of(t, ONE), "bob");
    assert_string_equal(name_of(t, TWO), "alice");
    assert_string_equal(name_of(t, THREE), "bob");
    assert_ptr_equal(tokens_find(t, ONE), tokens_find(t, THREE));
    assert_null(tokens_find(t, ""));
    assert_null(tokens_find(t, "one-0123456789a"));
    assert_null(tokens_find(t, ONE "b"));
    assert_null(tokens_find(t, "#"));
    assert_null(tokens_find(t, "no-token-0123456789"));
    tokens_free(t);
}

/* As many as there may be, in a time nobody notices: no pair of them is compared. */
static void finds_one_among_many(void **state)
{
    char           *text = malloc(10001 * 40), *at = text;
    struct tokens  *t;
    struct timespec before, after;
    struct err      e = {0};
    char           *again;

    (void)state;
    for (int i = 0; i < 10000; i++)
        at += sprintf(at, "p%d token-%016d\n", i % 5000, i);
    again = strdup(text);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    t = tokens_parse(again, &e);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    assert_non_null(t);
    /* 15 ms here; comparing each with each takes a second. Sanitizers are slow: half a second. */
    assert_true((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 <
                500);
    assert_string_equal(name_of(t, "token-0000000000007123"), "p2123");
    assert_ptr_equal(tokens_find(t, "token-0000000000007123"),
                     tokens_find(t, "token-0000000000002123"));
    tokens_free(t);
    sprintf(at, "p1 token-one-too-many\n");
    assert_null(tokens_parse(text, &e));
    assert_non_null(strstr(e.msg, "10000"));
    free(again);
    free(text);
}

static void refuses_files(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "no token"},
        {"# nobody\n\n", "no token"},
        {"alice\n", "line 1"},
        {"alice " ONE "\nbob " TWO " c\n", "line 2"},
        {"bob " ONE "\nalice " TWO "\n\nalice " ONE "\n", "line 4: the token of alice"},
        {"bob " ONE "\nbob " ONE "\n", "line 2"},
        {"bob 0123456789abcde\n", "line 1: a token has at least 16"},
        {"bob " ONE "\nalice short # " TWO "\n", "line 2: a token has at least 16"},
        {"bob #" ONE "\n", "line 1: a token does not begin with #"},
        {"bob # " ONE "\n", "line 1: a token does not begin with #"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa " ONE "\n",
         "at most 64"},
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
    char           text[] = "alice " ONE;
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
    assert_int_equal(write(fd, "alice " ONE, 22), 22);
    fchmod(fd, 0640);
    assert_null(tokens_load(path, &e));
    assert_non_null(strstr(e.msg, "chmod 600"));
    assert_non_null(strstr(e.msg, path));
    fchmod(fd, 0400);
    t = tokens_load(path, &e);
    assert_non_null(t);
    tokens_free(t);
    assert_int_equal(write(fd, "\n\0\nbob " TWO, 23), 23);
    assert_null(tokens_load(path, &e)); /* bob would be forgotten in silence */
    assert_non_null(strstr(e.msg, "there is a NUL byte in it"));
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
        cmocka_unit_test(finds_names),          cmocka_unit_test(finds_one_among_many),
        cmocka_unit_test(refuses_files),        cmocka_unit_test(wipes_the_text),
        cmocka_unit_test(wants_a_private_file), cmocka_unit_test(reads_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
