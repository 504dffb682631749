/* fuzz-init-words - what the init of a container reads before any frame: its command line, and the
 * kernel's counters. Words end at NUL bytes; the whole input is also a file of counters. */
#include "init/counters.c"
#include "init/words.h"

#include <arpa/inet.h>
#include <assert.h>

enum { WORDS_MAX = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct words *w)
{
    assert(w->n_places <= REDIRECT_PLACES_MAX);
    for (size_t i = 0; i < w->n_places; i++)
        assert(w->places[i].family == AF_INET || w->places[i].family == AF_INET6);
}

/* As execve has them: each of its own memory, so that nobody reads past one unseen. */
static void read_words(const char *text, size_t size)
{
    char        *argv[WORDS_MAX + 2] = {strdup("init")};
    int          argc = 1;
    struct words w;
    struct err   e = {0};

    for (size_t at = 0; at < size && argc <= WORDS_MAX; at += strlen(argv[argc++]) + 1)
        argv[argc] = strndup(text + at, size - at);
    if (words_parse(argc, argv, &w, &e) == 0)
        check(&w);
    else
        assert(e.kind == ERR_INVALID && *e.msg);
    for (int i = 0; i < argc; i++)
        free(argv[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        find_number(text, rows[i].word);
    free(text);
    read_words((const char *)data, size);
    return 0;
}
