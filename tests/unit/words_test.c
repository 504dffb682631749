#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fd.h"
#include "tools/words.h"

static const struct words words = {.memory_bytes = 300 << 20,
                                   .disk_bytes = 1LL << 30,
                                   .cpus_milli = 500,
                                   .pids = 77,
                                   .timeout_ms = 7000,
                                   .sandboxes = 9,
                                   .age_ms = 90 * 60000,
                                   .image = "node:22",
                                   .images = " Or others.",
                                   .network = "npm"};

static void check(const struct words *w, const char *text, const char *expected)
{
    autofree char *filled = words_fill(w, text);

    assert_string_equal(filled, expected);
}

static void sizes(void **state)
{
    static const struct {
        int64_t     bytes;
        const char *words;
    } cases[] = {
        {0, "0 bytes"},          {1, "1 bytes"},           {1023, "1023 bytes"},
        {1024, "1 KiB"},         {1025, "1025 bytes"},     {48 << 10, "48 KiB"},
        {512 << 20, "512 MiB"},  {1536 << 20, "1536 MiB"}, {1LL << 30, "1 GiB"},
        {1LL << 40, "1024 GiB"},
    };
    char text[WORDS_SIZE_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        words_size(cases[i].bytes, text);
        assert_string_equal(text, cases[i].words);
    }
}

static void times(void **state)
{
    static const struct {
        int64_t     ms;
        const char *words;
    } cases[] = {
        {0, "no limit"},   {1, "1 ms"},         {999, "999 ms"},    {1000, "1 s"},
        {1500, "1500 ms"}, {30000, "30 s"},     {60000, "1 min"},   {90000, "90 s"},
        {3600000, "1 h"},  {5400000, "90 min"}, {86400000, "24 h"},
    };
    char text[WORDS_SIZE_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        words_time(cases[i].ms, text);
        assert_string_equal(text, cases[i].words);
    }
}

static void every_word(void **state)
{
    (void)state;
    check(&words,
          "{memory} {disk} {cpus} {pids} {timeout} {timeoutMs} {sandboxes} {image} {network}",
          "300 MiB 1 GiB 0.500 77 7 s 7000 9 node:22 npm registries only");
    check(&words, "{image}.{images}", "node:22. Or others.");
    check(&words, "{memory}{memory}", "300 MiB300 MiB");
    check(&words, "ends{ends}.", "ends, at an age of 90 min.");
}

static void what_has_no_end(void **state)
{
    struct words w = words;

    (void)state;
    w.timeout_ms = w.age_ms = 0;
    w.cpus_milli = 2000;
    check(&w, "ends{ends}; {timeout}; {timeoutMs}; {cpus}", "ends; no limit; no limit; 2");
    w.idle_ms = 300000;
    check(&w, "ends{ends}", "ends, when unused for 5 min");
    w.age_ms = 1000;
    check(&w, "ends{ends}", "ends, at an age of 1 s, when unused for 5 min");
}

static void every_policy(void **state)
{
    static const char *const names[] = {"none", "npm", "allow", "internet", "host"};
    struct words             w = words;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        w.network = names[i];
        autofree char *filled = words_fill(&w, "{network}");
        assert_true(*filled && *filled != '{');
    }
}

static void braces_of_others(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "}",
        "{}",
        "{ memory}",
        "{\"name\":\"lodash\"}",
        "[{\"a\":{}}]",
        "{memory",
        "${x.y}",
        "{+path}",
        "sandbox://{1}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check(&words, texts[i], texts[i]);
    check(&words, "{{pids}}", "{77}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),        cmocka_unit_test(times),
        cmocka_unit_test(every_word),   cmocka_unit_test(what_has_no_end),
        cmocka_unit_test(every_policy), cmocka_unit_test(braces_of_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
