#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

struct wishes {
    bool               quiet;
    const char        *image;
    int64_t            memory, timeout, cpus, pids;
    struct option_list env;
};

#define AT(member) offsetof(struct wishes, member)
static const struct option rows[] = {
    {"quiet", 'q', OPTION_FLAG, AT(quiet), NULL, "say nothing"},
    {"image", 'i', OPTION_STRING, AT(image), "NAME", "which Node", "NODE_IMAGE"},
    {"memory", 'm', OPTION_SIZE, AT(memory), "SIZE", "memory limit"},
    {"run-timeout", 0, OPTION_DURATION, AT(timeout), "TIME", "deadline", "OLD_TIMEOUT_MS", true},
    {"cpus", 0, OPTION_CPUS, AT(cpus), "N", "processors", "OLD_CPUS"},
    {"pids", 0, OPTION_COUNT, AT(pids), "N", "processes"},
    {"env", 'e', OPTION_LIST, AT(env), "NAME=VALUE", "a variable", "OLD_ENV"},
    {0},
};

static int from_words(struct wishes *w, const char *const *words, int *ret_used, struct err *e)
{
    int n = 0;

    while (words[n])
        n++;
    return options_from_args(rows, w, n, (char *const *)words, ret_used, e);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void command_line_is_read(void **state)
{
    struct wishes w = {0};
    struct err    e = {0};
    int           used = -1;

    (void)state;
    assert_int_equal(
        from_words(&w,
                   WORDS("-q", "--image", "node:24", "-m", "64m", "--run-timeout=2", "--cpus=0.5",
                         "--pids", "9", "-e", "A=1", "--env=B=2=3", "x.js", "--quiet"),
                   &used, &e),
        0);
    assert_int_equal(used, 12);
    assert_true(w.quiet);
    assert_string_equal(w.image, "node:24");
    assert_int_equal(w.memory, 64 << 20);
    assert_int_equal(w.timeout, 2000);
    assert_int_equal(w.cpus, 500);
    assert_int_equal(w.pids, 9);
    assert_int_equal(w.env.n, 2);
    assert_string_equal(w.env.items[0], "A=1");
    assert_string_equal(w.env.items[1], "B=2=3");
}

static void words_that_are_no_options(void **state)
{
    static const struct {
        const char *words[4];
        int         used;
    } cases[] = {
        {{"x.js", "-q"}, 0},       {{"-", "-q"}, 0}, {{"--", "-q"}, 1},
        {{"-q", "--", "-x"}, 2},   {{"-q", "-"}, 1}, {{"-i", "--", "-q"}, 3},
        {{"-i", "-", "x"}, 2},     {{"", "-q"}, 0},  {{NULL}, 0},
        {{"--image=", "x.js"}, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wishes w = {0};
        int           used = -1;

        assert_int_equal(from_words(&w, cases[i].words, &used, NULL), 0);
        assert_int_equal(used, cases[i].used);
    }
}

static void flags_take_a_value_only_behind_equals(void **state)
{
    static const struct {
        const char *word;
        bool        before, after;
    } cases[] = {
        {"--quiet", false, true},       {"--quiet=1", false, true}, {"--quiet=true", false, true},
        {"--quiet=false", true, false}, {"--quiet=0", true, false}, {"--quiet=", true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wishes w = {.quiet = cases[i].before};
        int           used;

        assert_int_equal(from_words(&w, WORDS(cases[i].word, "0"), &used, NULL), 0);
        assert_int_equal(used, 1);
        assert_int_equal(w.quiet, cases[i].after);
    }
}

static void mistakes_are_explained(void **state)
{
    static const struct {
        const char *words[3], *sentence;
    } cases[] = {
        {{"--memroy", "1g"}, "unknown option '--memroy': did you mean '--memory'?"},
        {{"--imag=x"}, "unknown option '--imag': did you mean '--image'?"},
        {{"--zzzzzz"}, "unknown option '--zzzzzz'"},
        {{"--=1"}, "unknown option '--'"},
        {{"-x"}, "unknown option '-x'"},
        {{"-qm"}, "unknown option '-qm'"},
        {{"-q=1"}, "unknown option '-q=1'"},
        {{"--memory"}, "--memory needs SIZE"},
        {{"-e"}, "--env needs NAME=VALUE"},
        {{"-m", "much"}, "--memory: 'much' is not a size such as 64k, 512m or 1g"},
        {{"--quiet=yes"}, "--quiet: 'yes' is neither 1 nor 0"},
        {{"--pids=0"}, "--pids: '0' is not a whole number from 1 to 1000000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wishes w = {0};
        struct err    e = {0};
        int           used = -1;

        if (from_words(&w, cases[i].words, &used, &e) == 0)
            fail_msg("%s was taken", cases[i].words[0]);
        assert_string_equal(e.msg, cases[i].sentence);
        assert_int_equal(used, -1);
    }
}

static void lists_have_a_maximum(void **state)
{
    const char   *words[OPTION_LIST_MAX + 2] = {0};
    struct wishes w = {0};
    struct err    e = {0};
    int           used;

    (void)state;
    for (int i = 0; i < OPTION_LIST_MAX; i++)
        words[i] = "--env=A=1";
    assert_int_equal(from_words(&w, words, &used, &e), 0);
    assert_int_equal(w.env.n, OPTION_LIST_MAX);
    words[OPTION_LIST_MAX] = "--env=A=1";
    w.env.n = 0;
    assert_int_equal(from_words(&w, words, &used, &e), -1);
    assert_string_equal(e.msg, "--env: given more than 64 times");
}

static const char *const variables[] = {
    "JERBOA_QUIET",       "JERBOA_IMAGE",   "NODE_IMAGE", "JERBOA_MEMORY",
    "JERBOA_RUN_TIMEOUT", "JERBOA_CPUS",    "OLD_CPUS",   "JERBOA_PIDS",
    "JERBOA_ENV",         "OLD_TIMEOUT_MS", "OLD_ENV",
};

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    return 0;
}

static void environment_is_read(void **state)
{
    struct wishes w = {.pids = 5};
    struct err    e = {0};

    (void)state;
    setenv("JERBOA_QUIET", "true", 1);
    setenv("NODE_IMAGE", "node:22", 1);
    setenv("JERBOA_MEMORY", "1g", 1);
    setenv("JERBOA_RUN_TIMEOUT", "3", 1);
    setenv("OLD_CPUS", "2", 1);
    setenv("JERBOA_ENV", "A=1\nB=2 3\n\nC=", 1);
    assert_int_equal(options_from_env(rows, &w, &e), 0);
    assert_true(w.quiet);
    assert_string_equal(w.image, "node:22");
    assert_int_equal(w.memory, 1 << 30);
    assert_int_equal(w.timeout, 3000);
    assert_int_equal(w.cpus, 2000);
    assert_int_equal(w.pids, 5); /* a default stands */
    assert_int_equal(w.env.n, 3);
    assert_string_equal(w.env.items[1], "B=2 3");
    options_done(rows, &w);
}

static void second_names_may_count_milliseconds(void **state)
{
    static const struct {
        const char *text;
        int64_t     ms;
    } cases[] = {{"1500", 1500}, {"2s", 2000}, {"0", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wishes w = {0};

        setenv("OLD_TIMEOUT_MS", cases[i].text, 1);
        assert_int_equal(options_from_env(rows, &w, NULL), 0);
        assert_int_equal(w.timeout, cases[i].ms);
    }
}

static void mistakes_name_their_variable(void **state)
{
    struct wishes w = {0};
    struct err    e = {0};

    (void)state;
    setenv("OLD_TIMEOUT_MS", "soon", 1);
    assert_int_equal(options_from_env(rows, &w, &e), -1);
    assert_memory_equal(e.msg, "OLD_TIMEOUT_MS: 'soon' is not a duration", 40);
    unsetenv("OLD_TIMEOUT_MS");
    setenv("JERBOA_RUN_TIMEOUT", "soon", 1);
    assert_int_equal(options_from_env(rows, &w, &e), -1);
    assert_memory_equal(e.msg, "JERBOA_RUN_TIMEOUT: 'soon'", 26);
}

/* defaults < second name < own name < command line */
static void precedence(void **state)
{
    struct wishes w = {.timeout = 1};
    int           used;

    (void)state;
    setenv("OLD_TIMEOUT_MS", "2", 1);
    assert_int_equal(options_from_env(rows, &w, NULL), 0);
    assert_int_equal(w.timeout, 2);
    setenv("JERBOA_RUN_TIMEOUT", "3", 1);
    assert_int_equal(options_from_env(rows, &w, NULL), 0);
    assert_int_equal(w.timeout, 3000);
    assert_int_equal(from_words(&w, WORDS("--run-timeout", "4"), &used, NULL), 0);
    assert_int_equal(w.timeout, 4000);
}

static void own_name_replaces_the_list_of_the_second(void **state)
{
    struct wishes w = {0};

    (void)state;
    setenv("OLD_ENV", "A=1\nB=2", 1);
    setenv("JERBOA_ENV", "C=3", 1);
    assert_int_equal(options_from_env(rows, &w, NULL), 0);
    assert_int_equal(w.env.n, 1);
    assert_string_equal(w.env.items[0], "C=3");
    options_done(rows, &w);
}

static void help_has_a_line_a_row(void **state)
{
    char  *text = NULL;
    size_t size;
    FILE  *memory = open_memstream(&text, &size), *saved = stdout;

    (void)state;
    stdout = memory;
    options_print_help(rows);
    stdout = saved;
    fclose(memory);
    assert_non_null(strstr(text, "  -q, --quiet                say nothing\n"));
    assert_non_null(strstr(text, "      --run-timeout TIME     deadline\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_line_is_read),
        cmocka_unit_test(words_that_are_no_options),
        cmocka_unit_test(flags_take_a_value_only_behind_equals),
        cmocka_unit_test(mistakes_are_explained),
        cmocka_unit_test(lists_have_a_maximum),
        cmocka_unit_test_setup(environment_is_read, clear_environment),
        cmocka_unit_test_setup(second_names_may_count_milliseconds, clear_environment),
        cmocka_unit_test_setup(mistakes_name_their_variable, clear_environment),
        cmocka_unit_test_setup(precedence, clear_environment),
        cmocka_unit_test_setup(own_name_replaces_the_list_of_the_second, clear_environment),
        cmocka_unit_test(help_has_a_line_a_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
