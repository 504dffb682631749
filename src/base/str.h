/* str - small questions about strings, and the units people write: sizes, durations, processors. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

bool  str_starts(const char *s, const char *prefix);
bool  str_ends(const char *s, const char *suffix);
int   str_copy(char *ret, size_t size, const char *text); /* -1: too long, and *ret is "" */
char *str_format(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* caller frees */
char *str_dup(const char *text);                                              /* the same */
char *str_ndup(const char *text, size_t size_max);
char *str_vformat(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* As one word of a shell's: in quotes, unless all of it is harmless. The caller frees. */
char *str_quote(const char *text);

int str_hex_digit(char c); /* its value; -1: it is none */

/* The word of the list (ended by NULL) that is nearest to `word`, or NULL when none is near enough
 * to be worth suggesting. */
const char *str_nearest(const char *word, const char *const *list);

/* "64k", "512m", "1g", "1048576". */
int str_parse_size(const char *text, int64_t *ret_bytes, struct err *e);
/* "250ms", "1s", "5m", "1h"; a bare number counts bare_ms milliseconds each. */
int str_parse_duration(const char *text, int64_t bare_ms, int64_t *ret_ms, struct err *e);
/* "2", "0.5" in thousandths. */
int str_parse_cpus(const char *text, int64_t *ret_milli, struct err *e);
int str_parse_count(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *e);
