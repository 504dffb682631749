/* options - one table yields the command line, the environment and --help.
 *
 * Every `--a-b` is JERBOA_A_B in the environment; a row may have a second name there, kept from the
 * predecessor. The command line wins over the environment, the environment over the defaults that
 * the caller wrote into the struct. Strings are borrowed from argv and environ. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum option_type {
    OPTION_FLAG,     /* bool */
    OPTION_STRING,   /* const char * */
    OPTION_SIZE,     /* int64_t, bytes */
    OPTION_DURATION, /* int64_t, milliseconds; a bare number is seconds */
    OPTION_CPUS,     /* int64_t, thousandths of a processor */
    OPTION_COUNT,    /* int64_t, 1 to a million */
    OPTION_COUNT_0,  /* the same, or none */
    OPTION_LIST,     /* struct option_list; may be repeated; one a line in the environment */
};

enum { OPTION_LIST_MAX = 64 };

struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t      n;
    char       *owned; /* lines of the environment variable, or NULL */
};

struct option {
    const char      *name;   /* without dashes; the last row of a table has none */
    char             letter; /* short form, or 0 */
    enum option_type type;
    size_t           offset;
    const char      *argument; /* what --help calls it; NULL for a flag */
    const char      *help;
    const char      *second_env;
    bool             second_env_is_ms; /* a bare number in second_env is milliseconds */
};

int options_from_env(const struct option *rows, void *target, struct err *e);

/* Reads options up to the first word that is none, or past "--"; *ret_used is how many words of
 * argv were taken. "-" alone is no option. */
int options_from_args(const struct option *rows, void *target, int argc, char *const *argv,
                      int *ret_used, struct err *e);

void options_print_help(const struct option *rows);
void options_done(const struct option *rows, void *target); /* frees lists' lines */
