/* native - the engine that needs nothing but Linux: jerboa-jail around jerboa-init.
 *
 * Its plan is a pure composition, for the jail, which gets it over the control socket like any
 * other message. */
#pragma once

#include <stdbool.h>

#include "engine/engine.h"

extern const struct engine native;

bool        native_is_readable(const char *path); /* as a file of certificates */
const char *native_bundle(void);                  /* this machine's certificates, or NULL */
bool        native_bundle_is_named(void); /* … by SSL_CERT_FILE: it may hold more than these */

int native_print_steps(struct err *e); /* the jail's own table, on stdout */
