/* plan - a sandbox as a value: what the jail is to build, in the order in which it builds it.
 *
 * The native engine composes it as JSON (`jerboa run --explain` prints it), the jail decodes it.
 * The root is a list of entries, each of one kind; see plan.c for what a kind needs. Strings are
 * borrowed from the document. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "jail/redirect.h"

enum { PLAN_ENTRIES_MAX = 128 };

enum plan_kind {
    PLAN_BIND,         /* a directory or file of the host, read-only unless writable */
    PLAN_DEVICE,       /* a device node of the host */
    PLAN_TMPFS,        /* empty, with a size and a number of inodes */
    PLAN_PROC,         /* of the new pid namespace */
    PLAN_DIR,          /* a directory of mode `mode` */
    PLAN_FILE,         /* a small file with `text` */
    PLAN_CERTIFICATES, /* those in a file of the host, behind what stands at `target` */
    PLAN_LINK,         /* a symbolic link to `text` */
    PLAN_INNER,        /* `source` of the new root once more, at `target` */
    PLAN_ASIDE,        /* covers the mount at `target`; what was bound from it stays: for layers */
    PLAN_READONLY,     /* what stands at `target` cannot be written */
    PLAN_MASK,         /* what stands at `target`, if anything, cannot be seen */
};

struct plan_entry {
    enum plan_kind kind;
    const char    *target; /* absolute, in the new root */
    const char    *source;
    const char    *text;
    bool           writable;
    bool           as_owner; /* bind: whoever owns source outside is root inside */
    int64_t        bytes, inodes, mode;
    int            source_fd; /* a detached mount or a file, once root_open_sources has it; or -1 */
};

struct plan {
    const char *version; /* of who made it; main has judged it before anything else was decoded */
    const char *init;    /* in the new root */
    bool        host_network;
    bool        egress; /* connections leave through the pipe: see redirect.h */
    bool        strict; /* nothing starts when a wall is missing */
    int64_t     memory_bytes, cpus_milli, pids, fds;
    int64_t     init_memory_bytes; /* init's own cgroup: files it writes are charged there */
    /* Places on the host's loopback to which connections leave, too: registries. */
    struct redirect_place host_loopback[REDIRECT_PLACES_MAX];
    size_t                n_host_loopback;
    struct plan_entry     entries[PLAN_ENTRIES_MAX];
    size_t                n_entries;
};

const char *plan_kind_name(enum plan_kind kind);

int plan_decode(const json_t *document, struct plan *ret, struct err *e);
