/* store - where Jerboa keeps what it fetched: $JERBOA_HOME, else $XDG_CACHE_HOME/jerboa, else
 * ~/.cache/jerboa, for root too. */
#pragma once

#include <limits.h>

#include "base/err.h"

enum { STORE_PATH_MAX = PATH_MAX - NAME_MAX - 1 }; /* leaves room for an entry's name */

/* The path of a part of the store ("runtimes"); nothing is looked at. */
int store_path(const char *part, char ret[STORE_PATH_MAX], struct err *e);
int store_ensure(const char *part, struct err *e); /* makes what is missing; returns an fd */

/* Says in words what a failed write means for the store, and what to do: a full disk, a store that
 * cannot be written. Other errors stay as they are. Always -1. */
int store_explain(struct err *e);
