/* told - what the keeper is told by processes that read foreign bytes: it may be of somebody who
 * took them over, so it is checked before it is used. Pure. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "npm/packument.h"

/* A text of at most size - 1 bytes, without what a terminal would obey. */
void told_show(const char *text, size_t size, char *ret);

/* 0 when it is no error; -1 and the error as it may be shown. */
int told_check(const struct err *told, struct err *e);

/* Texts that end; a version that may stand in a path. */
int told_release(const struct release *told, struct err *e);
