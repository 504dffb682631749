/* fuzz-options - the command line and the environment, through a table with every type of option.
 *
 * An input is texts, each ended by NUL: what the variables of the rows hold, in their order (empty:
 * not set), then the words of the command line. Asserted: what is taken keeps the bounds of its
 * type, what is refused has one sentence, and no more words are used than there are. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 100, COUNT_MAX = 1000000 };

struct target {
    bool               flag;
    const char        *string;
    int64_t            size, duration, cpus, count, count_0;
    struct option_list list;
};

static const struct option rows[] = {
    {"flag", 'f', OPTION_FLAG, offsetof(struct target, flag), NULL, "a flag"},
    {"string", 's', OPTION_STRING, offsetof(struct target, string), "TEXT", "a string"},
    {"a-size", 'm', OPTION_SIZE, offsetof(struct target, size), "SIZE", "a size"},
    {"duration", 't', OPTION_DURATION, offsetof(struct target, duration), "TIME", "a duration",
     "FUZZ_SECOND_NAME", true},
    {"cpus", 'c', OPTION_CPUS, offsetof(struct target, cpus), "N", "processors"},
    {"count", 'n', OPTION_COUNT, offsetof(struct target, count), "N", "a count"},
    {"count-0", 0, OPTION_COUNT_0, offsetof(struct target, count_0), "N", "a count, or none"},
    {"list", 'l', OPTION_LIST, offsetof(struct target, list), "ITEM", "a list"},
    {0},
};

/* In the order of the rows; the second name of one of them is the last. */
static const char *const variables[] = {"JERBOA_FLAG",     "JERBOA_STRING", "JERBOA_A_SIZE",
                                        "JERBOA_DURATION", "JERBOA_CPUS",   "JERBOA_COUNT",
                                        "JERBOA_COUNT_0",  "JERBOA_LIST",   "FUZZ_SECOND_NAME"};
enum { VARIABLES = sizeof variables / sizeof variables[0] };

static void require(int truth)
{
    if (!truth)
        abort();
}

static char *take_text(const uint8_t **at, size_t *size)
{
    const uint8_t *end = *size ? memchr(*at, '\0', *size) : NULL;
    size_t         n = end ? (size_t)(end - *at) : *size;
    char          *text = str_ndup((const char *)*at, n);

    *at += n + (end != NULL);
    *size -= n + (end != NULL);
    return text;
}

static void check(const struct target *t)
{
    require(t->size >= 0 && t->duration >= 0 && t->cpus >= 0);
    require(t->count >= 1 && t->count <= COUNT_MAX);
    require(t->count_0 >= 0 && t->count_0 <= COUNT_MAX);
    require(t->list.n <= OPTION_LIST_MAX);
    for (size_t i = 0; i < t->list.n; i++)
        require(t->list.items[i] != NULL);
}

static void read_all(int argc, char **argv)
{
    struct target t = {.count = 1, .count_0 = 1};
    struct err    e = {0};
    int           used = -1;

    if (options_from_env(rows, &t, &e) < 0 ||
        options_from_args(rows, &t, argc, argv, &used, &e) < 0) {
        require(e.kind != ERR_NONE && e.msg[0]);
    } else {
        require(used >= 0 && used <= argc);
        require(used == argc || argv[used][0] != '-' || !argv[used][1] ||
                (used > 0 && strcmp(argv[used - 1], "--") == 0));
        check(&t);
    }
    options_done(rows, &t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char          *argv[WORDS_MAX + 1] = {0};
    int            argc = 0;
    const uint8_t *at = data ? data : (const uint8_t *)"";

    for (size_t i = 0; i < VARIABLES; i++) {
        char *value = take_text(&at, &size);

        require(setenv(variables[i], value, 1) == 0);
        free(value);
    }
    while (size > 0 && argc < WORDS_MAX)
        argv[argc++] = take_text(&at, &size);
    read_all(argc, argv);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return 0;
}
