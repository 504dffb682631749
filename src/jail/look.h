/* look - whether this machine lets this user have sandboxes at all: the question that decides
 * between native and another engine, asked before anything is fetched or started. */
#pragma once

#include "base/err.h"

/* -1: not, and what to do. */
int look_for_namespaces(struct err *e);
