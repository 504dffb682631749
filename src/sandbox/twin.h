/* twin - a directory of the user's as sandboxes have it that cannot be shown it: a copy at
 * /workspace/files, made like the original before a run, and brought back after it.
 *
 * Both ways only what changed is sent, files that are gone included. Who wrote last wins: what a
 * run changed replaces what others did outside meanwhile; but what they changed is not deleted.
 * Into the sandbox go files and links; out of it come regular files only, with the mode they had
 * here. Empty directories go neither way. What is brought back comes from hostile code: see
 * landing.h, and the bounds are those below. */
#pragma once

#include "base/err.h"
#include "sandbox/files.h"
#include "sandbox/sandbox.h"

enum { TWIN_FILES_MAX = 10000 };

struct twin;

/* `max_bytes`: of all files, inside; what a sandbox has room for. */
struct twin *twin_new(struct sandbox *s, int64_t max_bytes);
/* The sandbox is not asked any more. What is under way is told its end all the same. */
void twin_free(struct twin *t);

/* One at a time. `done` is called once, from the loop, also when the sandbox ends meanwhile.
 * `files` is the watch over `dir`, and both must live until then. */
void twin_send(struct twin *t, struct files *files, const char *dir,
               void (*done)(void *owner, const struct err *e), void *owner);
/* An error says which file did not come first, and how many; the others are there. With them the
 * directory has no more than may be sent again. What is added to it may be `quota_bytes`; 0: no
 * limit. */
void twin_fetch(struct twin *t, struct files *files, const char *dir, int64_t quota_bytes,
                void (*done)(void *owner, const struct err *e), void *owner);
/* What is under way, if something is, goes no further than it must; `done` still comes. */
void twin_cancel(struct twin *t);
