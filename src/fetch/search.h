/* search - packages that a registry finds, and the beginning of a package's README, both as JSON;
 * with the user's configuration. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct registry;

/* What is read of a README: more than is shown, since it may begin with blanks. */
enum { SEARCH_README_BYTES = 4000 };

/* `query` is of npm/search_query.h; `scope` ("@name", or "") chooses the registry.
 *   {"packages": [{"name": …, "description": …}, …]}: at most five
 *   {"reason": …}: one sentence, this registry has no search */
int search_fetch(const char *query, const char *scope, struct buf *ret, struct err *e);

/* The same in the process that may connect (fetch/line.h). */
int search_ask(struct registry *r, const char *scope, const char *query, struct buf *ret,
               struct err *e);

/* {"readme": …}: at most 500 characters, of the registry's document, else of the latest tarball;
 * without the member when there is none. */
int search_readme(const char *name, struct buf *ret, struct err *e);
