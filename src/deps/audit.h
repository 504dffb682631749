/* audit - what an installer resolved, by its lock: every package comes from a configured registry.
 *
 * Both locks list each package with the dependencies that it declares itself, so that a registry's
 * package which wants a git repository, an address or a directory is found even where the installer
 * would have taken it. The text was made by the installer from documents of registries: it is
 * hostile. Pure. */
#pragma once

#include "base/err.h"

enum { AUDIT_LOCK_MAX = 32 << 20 };

/* `registries`: their addresses, ended by NULL. ERR_INVALID names the first package that is not
 * from one of them. */
int audit_bun_lock(const char *text, const char *const *registries, struct err *e);
int audit_npm_lock(const char *text, const char *const *registries, struct err *e);
