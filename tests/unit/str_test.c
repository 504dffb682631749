#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

struct good {
    const char *text;
    int64_t     value;
};

static const struct good sizes[] = {
    {"0", 0},
    {"1", 1},
    {"1048576", MIB},
    {"64k", 64 * KIB},
    {"64K", 64 * KIB},
    {"512m", 512 * MIB},
    {"1g", GIB},
    {"007", 7},
    {"9223372036854775807", INT64_MAX},
    {"8589934591g", INT64_MAX - GIB + 1},
};

static const char *const no_sizes[] = {
    "",   "k",    "-1",   "+1",  " 1",  "1 ",  "1 k",         "1kb",
    "1t", "0x10", "1.5g", "1e3", "1k1", "64м", "8589934592g", "9223372036854775808",
};

static const struct good durations[] = {
    {"0", 0},
    {"30", 30000},
    {"250ms", 250},
    {"1s", 1000},
    {"5m", 300000},
    {"1h", 3600000},
    {"2H", 7200000},
    {"250MS", 250},
    {"0ms", 0},
    {"1M", 60000},
    {"9223372036854775807ms", INT64_MAX},
};

static const char *const no_durations[] = {
    "",
    "s",
    "-1s",
    "1.5s",
    "1d",
    "1 s",
    "1sec",
    "ms",
    "9223372036854775807s",
    "9223372036854775807",
};

static const struct good cpus[] = {
    {"2", 2000}, {"0.5", 500}, {"0.01", 10}, {"1.0005", 1001}, {"1024", 1024000}, {"1.", 1000},
};

static const char *const no_cpus[] = {
    "",   "0",   "0.009", "1025", ".5",  "-1",  "+1",  " 1",
    "1 ", "1,5", "two",   "nan",  "0x2", "1e2", "inf", "1e400",
};

static const struct good counts[] = {{"1", 1}, {"10", 10}, {"100", 100}};

static const char *const no_counts[] = {
    "", "0", "101", "-1", "1k", "1.0", " 1", "99999999999999999999",
};

#define N(a) (sizeof(a) / sizeof((a)[0]))

typedef int parse(const char *text, int64_t *ret, struct err *e);

static int parse_seconds(const char *text, int64_t *ret, struct err *e)
{
    return str_parse_duration(text, 1000, ret, e);
}

static int parse_to_hundred(const char *text, int64_t *ret, struct err *e)
{
    return str_parse_count(text, 1, 100, ret, e);
}

static void check(parse *p, const struct good *good, size_t n_good, const char *const *bad,
                  size_t n_bad)
{
    for (size_t i = 0; i < n_good; i++) {
        struct err e = {0};
        int64_t    value = -1;

        if (p(good[i].text, &value, &e) < 0 || value != good[i].value)
            fail_msg("'%s': %lld, %s", good[i].text, (long long)value, e.msg);
    }
    for (size_t i = 0; i < n_bad; i++) {
        struct err e = {0};
        int64_t    value = -1;

        if (p(bad[i], &value, &e) == 0 || value != -1)
            fail_msg("'%s' was taken for %lld", bad[i], (long long)value);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_non_null(strstr(e.msg, bad[i])); /* says which word it means */
    }
}

static void sizes_are_parsed(void **state)
{
    (void)state;
    check(str_parse_size, sizes, N(sizes), no_sizes, N(no_sizes));
}

static void durations_are_parsed(void **state)
{
    int64_t ms;

    (void)state;
    check(parse_seconds, durations, N(durations), no_durations, N(no_durations));
    assert_int_equal(str_parse_duration("1500", 1, &ms, NULL), 0);
    assert_int_equal(ms, 1500);
}

static void cpus_are_parsed(void **state)
{
    (void)state;
    check(str_parse_cpus, cpus, N(cpus), no_cpus, N(no_cpus));
}

static void counts_are_parsed(void **state)
{
    (void)state;
    check(parse_to_hundred, counts, N(counts), no_counts, N(no_counts));
}

static void nearest_is_found(void **state)
{
    static const char *const list[] = {"memory", "timeout", "network", "disk", "run", NULL};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"memory", "memory"}, {"memroy", "memory"},   {"mem", "memory"},  {"time-out", "timeout"},
        {"dsk", "disk"},      {"netwrok", "network"}, {"ran", "run"},     {"xyzzy", NULL},
        {"", NULL},           {"verbose", NULL},      {"running", "run"},
    };
    char longest[100] = {0};

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        const char *found = str_nearest(cases[i].word, list);

        if (found != cases[i].nearest &&
            (!found || !cases[i].nearest || strcmp(found, cases[i].nearest) != 0))
            fail_msg("'%s': %s", cases[i].word, found ? found : "none");
    }
    memset(longest, 'm', sizeof longest - 1);
    assert_null(str_nearest(longest, list));
}

static void small_questions(void **state)
{
    char *text = str_format("%s-%d", "a", 1);
    char  small[4];

    (void)state;
    assert_string_equal(text, "a-1");
    free(text);
    text = str_dup("");
    assert_string_equal(text, "");
    free(text);
    text = str_ndup("jerboa", 3);
    assert_string_equal(text, "jer");
    free(text);
    assert_int_equal(str_hex_digit('0'), 0);
    assert_int_equal(str_hex_digit('9'), 9);
    assert_int_equal(str_hex_digit('a'), 10);
    assert_int_equal(str_hex_digit('F'), 15);
    for (const char *c = "/:@G`g \x10\xe1"; *c; c++)
        assert_int_equal(str_hex_digit(*c), -1);
    assert_int_equal(str_hex_digit('\0'), -1);
    assert_true(str_starts("node:24", "node:"));
    assert_true(str_starts("node", ""));
    assert_false(str_starts("nod", "node"));
    assert_true(str_ends("@scope:registry", ":registry"));
    assert_true(str_ends("node", ""));
    assert_false(str_ends("ode", "node"));
    assert_false(str_ends("node:", "node"));
    assert_int_equal(str_copy(small, sizeof small, "abc"), 0);
    assert_string_equal(small, "abc");
    assert_int_equal(str_copy(small, sizeof small, "abcd"), -1);
    assert_string_equal(small, "");
}

/* A shell makes the same text of it again; what needs no quotes has none. */
static void a_shell_reads_what_was_quoted(void **state)
{
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        {"/usr/bin/jerboa-jail", "/usr/bin/jerboa-jail"},
        {"", "''"},
        {"/home/a b/x", "'/home/a b/x'"},
        {"it's", "'it'\\''s'"},
        {"''", "''\\'''\\'''"},
        {"$(id) `id` \"*\" ~ \\ ; & | > < # ! ? [a] {b,c}\nline",
         "'$(id) `id` \"*\" ~ \\ ; & | > < # ! ? [a] {b,c}\nline'"},
        {"~", "'~'"},
        {"caf\xc3\xa9", "'caf\xc3\xa9'"},
    };

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        char *quoted = str_quote(cases[i].text), *command, read[200];
        FILE *shell;
        assert_string_equal(quoted, cases[i].quoted);
        command = str_format("printf %%s %s", quoted);
        shell = popen(command, "r");
        assert_non_null(shell);
        read[fread(read, 1, sizeof read - 1, shell)] = '\0';
        assert_int_equal(pclose(shell), 0);
        assert_string_equal(read, cases[i].text);
        free(quoted);
        free(command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(durations_are_parsed),
        cmocka_unit_test(cpus_are_parsed),
        cmocka_unit_test(counts_are_parsed),
        cmocka_unit_test(nearest_is_found),
        cmocka_unit_test(small_questions),
        cmocka_unit_test(a_shell_reads_what_was_quoted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
