/* chart - what the doctor found: a row for each thing it looked at, and how they are told, as a
 * table or as JSON.
 *
 * A row that is off has a reason and, where one command mends it, that command as `fix`: whole, and
 * ready to be pasted into a shell. Advice that is no command belongs to the reason. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { CHART_ROWS_MAX = 64 };

enum chart_state { CHART_UNTRIED, CHART_ON, CHART_OFF };

struct chart_row {
    const char      *kind; /* need, wall, bound, limit, more */
    char            *name;
    bool             required; /* for the engine to work */
    enum chart_state state;
    char            *what; /* it is for, or was seen */
    char            *why;  /* it is off, or NULL */
    char            *fix;  /* one command, or NULL */
};

struct chart { /* zeroed at first */
    struct chart_row rows[CHART_ROWS_MAX];
    size_t           n;
};

void chart_done(struct chart *c);

struct chart_row *chart_add(struct chart *c, const char *kind, const char *name, const char *what);
struct chart_row *chart_find(struct chart *c, const char *name); /* or NULL */

void chart_put(char **to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

const char *chart_sudo(void); /* what commands of root begin with, for who runs this */

/* Off, for a reason; `fix` is what the jail knows of it: a command behind words that say whose it
 * is, or advice, or "". */
void chart_set_off_with(struct chart_row *row, const char *why, const char *fix);
/* Both in one sentence, as errors have it. */
void chart_set_off(struct chart_row *row, const char *sentence);

bool chart_works(const struct chart *c); /* all that is required is on */

void chart_print(const struct chart *c);
void chart_print_json(const struct chart *c);
