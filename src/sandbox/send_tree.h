/* send_tree - a directory of this machine on its way into a sandbox that cannot be shown it: by the
 * bytes, through the pipe.
 *
 * What is sent lies on the sandbox's own disk and counts there. Links go as links. */
#pragma once

#include "base/err.h"
#include "sandbox/sandbox.h"

struct send_tree {
    const char *dir;
    const char *target;  /* inside; what was there is replaced */
    int         list_fd; /* -1; or: only these paths, relative, each ended by NUL, are made anew or,
                            where there is none any more, removed; the rest of target stays */
    const char *what;    /* for an error: "the dependencies"; lives for ever */
};

struct sending;

/* What `tree` points to need not outlive the call. done is called once, from the loop, also when
 * the sandbox ends meanwhile, and after ten minutes with ERR_TIMEOUT. */
struct sending *send_tree_start(struct sandbox *s, const struct send_tree            *tree,
                                void (*done)(void *owner, const struct err *e), void *owner);
void            send_tree_cancel(struct sending *s); /* before done, which still comes */
