#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), tail = strlen(suffix);

    return n >= tail && strcmp(s + n - tail, suffix) == 0;
}

int str_copy(char *ret, size_t size, const char *text)
{
    size_t n = strlen(text);

    *ret = '\0';
    if (n >= size)
        return -1;
    memcpy(ret, text, n + 1);
    return 0;
}

char *str_vformat(const char *fmt, va_list ap)
{
    char *text;

    if (vasprintf(&text, fmt, ap) < 0)
        abort();
    return text;
}

char *str_dup(const char *text)
{
    return str_ndup(text, strlen(text));
}

char *str_ndup(const char *text, size_t size_max)
{
    char *copy = strndup(text, size_max);

    if (!copy)
        abort();
    return copy;
}

int str_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *str_format(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    char *text = str_vformat(fmt, ap);
    va_end(ap);
    return text;
}

char *str_quote(const char *text)
{
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789/._-+,:@%=";
    static const char quote[] = {'\'', '\\', '\'', '\''}; /* out, escaped, in again */
    size_t            n = strlen(text), at = 0;
    char             *quoted;

    if (n > 0 && text[strspn(text, harmless)] == '\0')
        return str_dup(text);
    quoted = calloc(n + 1, sizeof quote); /* room for the outer two and the end as well */
    if (!quoted)
        abort();
    quoted[at++] = '\'';
    for (; *text; text++) {
        if (*text == '\'') {
            memcpy(quoted + at, quote, sizeof quote);
            at += sizeof quote;
        } else {
            quoted[at++] = *text;
        }
    }
    quoted[at] = '\'';
    return quoted;
}

/* Levenshtein's distance; words longer than the row are never near. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    size_t row[LONGEST + 1], la = strlen(a), lb = strlen(b);

    if (la > LONGEST || lb > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[lb];
}

const char *str_nearest(const char *word, const char *const *list)
{
    const char *nearest = NULL;
    size_t      best = (strlen(word) + 1) / 2 + 1; /* more than half rewritten is another word */

    for (; *list; list++) {
        bool   begins = strlen(word) > 1 && (str_starts(*list, word) || str_starts(word, *list));
        size_t d = begins ? 0 : distance(word, *list);
        if (d < best) {
            best = d;
            nearest = *list;
        }
    }
    return nearest;
}

struct unit {
    const char *suffix;
    int64_t     factor;
};

/* A non-negative whole number and a unit of the table, case aside. */
static int parse_with_unit(const char *text, const struct unit *units, int64_t *ret)
{
    char     *end;
    long long n;
    int64_t   value;

    if (!isdigit((unsigned char)text[0]))
        return -1;
    errno = 0;
    n = strtoll(text, &end, 10);
    if (errno)
        return -1;
    for (; units->suffix; units++) {
        if (strcasecmp(end, units->suffix) != 0)
            continue;
        if (__builtin_mul_overflow((int64_t)n, units->factor, &value))
            return -1;
        *ret = value;
        return 0;
    }
    return -1;
}

int str_parse_size(const char *text, int64_t *ret_bytes, struct err *e)
{
    static const struct unit units[] = {
        {"", 1}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {NULL, 0},
    };

    if (parse_with_unit(text, units, ret_bytes) < 0)
        return err_set(e, ERR_INVALID, "'%.60s' is not a size such as 64k, 512m or 1g", text);
    return 0;
}

int str_parse_duration(const char *text, int64_t bare_ms, int64_t *ret_ms, struct err *e)
{
    const struct unit units[] = {
        {"", bare_ms}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {NULL, 0},
    };

    if (parse_with_unit(text, units, ret_ms) < 0)
        return err_set(e, ERR_INVALID, "'%.60s' is not a duration such as 250ms, 30s, 5m or 1h",
                       text);
    return 0;
}

int str_parse_cpus(const char *text, int64_t *ret_milli, struct err *e)
{
    char  *end;
    double n;

    errno = 0;
    n = strtod(text, &end);
    if (!isdigit((unsigned char)text[0]) || text[strspn(text, "0123456789.")] || errno || *end ||
        !(n >= 0.01 && n <= 1024))
        return err_set(e, ERR_INVALID,
                       "'%.60s' is not a number of processors such as 2 or 0.5 (at least 0.01)",
                       text);
    *ret_milli = (int64_t)(n * 1000 + 0.5);
    return 0;
}

int str_parse_count(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e)
{
    static const struct unit plain[] = {{"", 1}, {NULL, 0}};
    int64_t                  n;

    if (parse_with_unit(text, plain, &n) < 0 || n < min || n > max)
        return err_set(e, ERR_INVALID, "'%.60s' is not a whole number from %lld to %lld", text,
                       (long long)min, (long long)max);
    *ret = n;
    return 0;
}
