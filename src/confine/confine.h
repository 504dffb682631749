/* confine - a process of ours gives up, for good, whatever it does not need, before it looks at
 * bytes of others: so that whoever takes it over by such bytes has gained little.
 *
 * What it keeps is a value: places of the file system, system calls, the network or not. The walls,
 * in this order: capabilities, new privileges, being looked at by others (core files, ptrace),
 * resources, Landlock, the filter of system calls. If one cannot be built it is an error, and the
 * caller must not go on; but a kernel without Landlock leaves files and connections to what the
 * others keep (SECURITY.md says what that is; `jerboa doctor` says whether it is so).
 *
 * Not for programs that start others: those would inherit it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "confine/calls.h"

enum confine_access {
    CONFINE_READ,  /* files and directories */
    CONFINE_WRITE, /* everything beneath it but devices, sockets and executing */
    CONFINE_FILL,  /* new files and directories beneath it; nothing is read, moved or removed */
};

struct confine_place {
    const char         *path; /* one that is not there is left out */
    int                 fd;   /* where path is NULL: borrowed */
    enum confine_access access;
};

struct confine {
    const char                 *role; /* one word, for errors */
    const struct confine_place *places;
    size_t                      n_places;
    const struct call          *calls;
    size_t                      n_calls;
    bool                        connects;  /* by TCP; listening is never left */
    bool                        is_hidden; /* its memory holds what other processes may not see */
    /* The kernel holds the death signal of children (PR_SET_PDEATHSIG) against what their parent
     * may signal: whoever has some in another role keeps it, and its filter has no call for it. */
    bool    ends_children;
    bool    of_others;  /* root's right to files of others stays */
    int64_t file_bytes; /* of the longest file that it may write */
};

int confine_enter(const struct confine *c, struct err *e);

/* Wipes all variables of the environment but these (a list that ends with NULL), so that no token
 * of theirs is in this process's memory. */
void confine_forget_environment(const char *role, const char *const *keep);
