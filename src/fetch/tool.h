/* tool - puts a program that Jerboa runs into the store: see store/tool.h. */
#pragma once

#include <limits.h>

#include "base/err.h"

int tool_fetch(const char *name, char ret_dir[PATH_MAX], struct err *e);
