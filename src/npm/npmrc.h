/* npmrc - the text of an npmrc, as npm's own reader understands it, and ${VARIABLES} in it.
 *
 * Lines `key = value`; `key[] = value` adds to a list; a key alone is true; ; and # begin a
 * comment; values in quotes are JSON strings. What stands below a [section] is no setting of npm's
 * and is not told. No file and no environment is read here. */
#pragma once

#include "base/buf.h"

struct npmrc_line {
    const char *key;     /* without "[]" */
    const char *value;   /* trimmed, variables as written */
    int         is_list; /* `key[]`: belongs to the others of the same key */
};

/* Calls `take` for each setting in the order of the text; stops when it returns -1. */
int npmrc_parse(const char *text, int (*take)(void *owner, const struct npmrc_line *line),
                void       *owner);

/* Adds `text` to ret with each ${NAME} replaced by what `get` tells: an unset one stays as it is,
 * and ${NAME?} becomes nothing. A backslash before it keeps it literal. -1: over ret's maximum. */
int npmrc_expand(const char *text, const char *(*get)(const char *name), struct buf *ret);
int npmrc_has_variable(const char *text);
