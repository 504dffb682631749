#include "tools/words.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

void words_size(int64_t bytes, char ret[WORDS_SIZE_MAX])
{
    static const struct {
        int         shift;
        const char *unit;
    } units[] = {{30, "GiB"}, {20, "MiB"}, {10, "KiB"}, {0, "bytes"}};
    size_t i = 0;

    while (units[i].shift > 0 && (bytes == 0 || bytes % (1LL << units[i].shift) != 0))
        i++;
    snprintf(ret, WORDS_SIZE_MAX, "%" PRId64 " %s", bytes >> units[i].shift, units[i].unit);
}

void words_time(int64_t ms, char ret[WORDS_SIZE_MAX])
{
    static const struct {
        int64_t     ms;
        const char *unit;
    } units[] = {{3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;

    while (ms % units[i].ms != 0)
        i++;
    if (ms == 0)
        snprintf(ret, WORDS_SIZE_MAX, "no limit");
    else
        snprintf(ret, WORDS_SIZE_MAX, "%" PRId64 " %s", ms / units[i].ms, units[i].unit);
}

static void cpus(int64_t milli, char ret[WORDS_SIZE_MAX])
{
    if (milli % 1000 == 0)
        snprintf(ret, WORDS_SIZE_MAX, "%" PRId64, milli / 1000);
    else
        snprintf(ret, WORDS_SIZE_MAX, "%" PRId64 ".%03" PRId64, milli / 1000, milli % 1000);
}

static const char *network(const char *policy)
{
    static const struct {
        const char *policy, *words;
    } rows[] = {
        {"none", "none"},
        {"npm", "npm registries only"},
        {"allow", "only hosts that the operator allowed"},
        {"internet", "public internet, never the host's or private addresses"},
        {"host", "the host's own"},
    };
    size_t i = 0;

    while (strcmp(rows[i].policy, policy) != 0)
        i++;
    return rows[i].words;
}

static void number(int64_t n, char ret[WORDS_SIZE_MAX])
{
    snprintf(ret, WORDS_SIZE_MAX, "%" PRId64, n);
}

static void number_or_none(int64_t n, char ret[WORDS_SIZE_MAX])
{
    if (n)
        number(n, ret);
    else
        snprintf(ret, WORDS_SIZE_MAX, "no limit");
}

/* How a sandbox ends besides being stopped: a clause each. */
static void add_ends(struct buf *b, const struct words *w)
{
    char text[WORDS_SIZE_MAX];

    words_time(w->age_ms, text);
    if (w->age_ms)
        buf_printf(b, ", at an age of %s", text);
    words_time(w->idle_ms, text);
    if (w->idle_ms)
        buf_printf(b, ", when unused for %s", text);
}

static bool is(const char *name, size_t size, const char *word)
{
    return strlen(word) == size && strncmp(name, word, size) == 0;
}

static void add_word(struct buf *b, const struct words *w, const char *name, size_t size)
{
    const struct {
        const char *name;
        void (*write)(int64_t value, char ret[WORDS_SIZE_MAX]);
        int64_t value;
    } rows[] = {
        {"memory", words_size, w->memory_bytes}, {"disk", words_size, w->disk_bytes},
        {"cpus", cpus, w->cpus_milli},           {"pids", number, w->pids},
        {"timeout", words_time, w->timeout_ms},  {"timeoutMs", number_or_none, w->timeout_ms},
        {"sandboxes", number, w->sandboxes},
    };
    char text[WORDS_SIZE_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (is(name, size, rows[i].name)) {
            rows[i].write(rows[i].value, text);
            buf_printf(b, "%s", text);
            return;
        }
    if (is(name, size, "image")) {
        buf_printf(b, "%s", w->image);
    } else if (is(name, size, "images")) {
        buf_printf(b, "%s", w->images);
    } else if (is(name, size, "ends")) {
        add_ends(b, w);
    } else {
        assert(is(name, size, "network")); /* no text has a word that is not here */
        buf_printf(b, "%s", network(w->network));
    }
}

/* A brace is a word's only if a letter follows: examples of JSON have others. */
char *words_fill(const struct words *w, const char *text)
{
    struct buf b;
    char      *filled;

    buf_init(&b, 1 << 16);
    while (*text) {
        size_t plain = strcspn(text, "{");
        size_t word = text[plain] ? strspn(text + plain + 1, "abcdefghijklmnopqrstuvwxyzM") : 0;
        bool   is_word = word > 0 && text[plain + 1 + word] == '}';
        if (text[plain] && !is_word)
            plain++;
        buf_add(&b, text, plain);
        text += plain;
        if (is_word) {
            add_word(&b, w, text + 1, word);
            text += word + 2;
        }
    }
    filled = str_dup(buf_text(&b));
    buf_done(&b);
    return filled;
}
