/* program - where programs are. Ours: beside this one, else in PREFIX/libexec/jerboa. */
#pragma once

#include <limits.h>

#include "base/err.h"

char *program_find(const char *name, struct err *e); /* the caller frees it; NULL: in neither */

/* Another's, by PATH: the file itself, links resolved. ERR_UNAVAILABLE: it is not there. */
int program_on_path(const char *name, char ret[PATH_MAX], struct err *e);
