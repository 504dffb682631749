/* scripts - whether a fresh node_modules holds packages that want to run something when they are
 * installed: a script of package.json, or a binding.gyp. No package's code has run in it yet, but
 * its files are anybody's: nothing is followed, and what cannot be understood counts as yes. */
#pragma once

#include "base/err.h"

/* 1: some package does. 0: none. */
int scripts_look(int modules_fd, struct err *e);
