/* program - where the other programs of ours are: beside this one, else in PREFIX/libexec/jerboa.
 */
#pragma once

#include "base/err.h"

char *program_find(const char *name, struct err *e); /* the caller frees it; NULL: in neither */
