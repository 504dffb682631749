/* roles - the three processes of jerboa-fetch, and what each of them keeps (confine/confine.h).
 *
 *   line     talks to registries and proxies: TLS, HTTP, JSON of whoever answers, tokens. It reads
 *            certificates and what the resolver needs, and writes nothing but a file that the
 *            keeper opened for it and the terminal's progress.
 *   keeper   what the program began as: waits, writes the parts of the store that the job is about,
 *            reads archives for types and READMEs. No network, no token in its memory.
 *   untar    unpacks one archive: makes files in one directory. It can read nothing but the
 *            archive, remove nothing, ask nobody.
 *
 * None of them can execute a program, trace or signal another process, or reach a unix socket
 * that it was not born with. */
#pragma once

#include "base/err.h"

int roles_become_line(const char *cafile, struct err *e); /* or NULL */
/* The parts (a list that ends with NULL) are made if they are missing. */
int roles_become_keeper(const char *const *parts, struct err *e);
int roles_become_untar(int dir_fd, struct err *e);
