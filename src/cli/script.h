/* script - what `jerboa run` was asked to run: the code, the name it gets inside, its arguments. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct script {
    char  *path; /* inside, absolute */
    char  *code; /* NULL: it is already there, in the directory that --dir shows */
    size_t size;
    bool   took_stdin; /* the code came from stdin, so the script's own is at its end */
};

int script_from_text(struct script *ret, const char *text);
int script_from_stdin(struct script *ret, struct err *e);
/* Only the file goes in, under its own name, unless it lies below `dir` (or NULL), which is shown
 * whole: then it runs where it lies, and its relative imports work. */
int  script_from_file(struct script *ret, const char *file, const char *dir, struct err *e);
void script_done(struct script *s);
