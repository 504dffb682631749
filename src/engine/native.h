/* native - the engine that needs nothing but Linux: jerboa-jail around jerboa-init.
 *
 * native_plan is a pure composition: what the user asked for and what the host looks like become a
 * value that can be printed and tested without any rights. native_start spawns the jail and hands
 * the descriptors back; the plan is sent over them like any other message. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "loop/child.h"

/* What a sandbox has unless the user says otherwise; of the memory, half may be disk. */
enum {
    NATIVE_MEMORY_BYTES = 512 << 20,
    NATIVE_CPUS_MILLI = 1000,
    NATIVE_PIDS = 512,
    NATIVE_FDS = 1024,
};

/* A directory or file of the host; whoever owns it outside is root inside. */
struct native_bind {
    const char *source; /* a real path */
    const char *target; /* absolute, inside */
    bool        writable;
};

/* A place on this machine's loopback. */
enum { NATIVE_PLACES_MAX = 16 };

struct native_place {
    char     address[46];
    uint16_t port;
};

struct native_spec {
    int64_t     memory_bytes, disk_bytes, cpus_milli, pids, fds;
    bool        host_network; /* else its connections go through the pipe */
    bool        strict;       /* refuse when a wall is missing */
    const char *runtime_dir;  /* bin/node below it; absolute */
    const char *files_dir;    /* or NULL; writable at /workspace/files, belongs to its owner */
    const char *dir;          /* or NULL; read-only at /workspace/dir */
    const struct native_bind *binds; /* what else it sees */
    size_t                    n_binds;
    const char               *npmrc; /* or NULL; the text of /etc/npmrc */

    /* Registries that are reached although they are on the host's loopback. */
    const struct native_place *host_loopback;
    size_t                     n_host_loopback;

    /* Trusted beside native_bundle: files, a list ended by NULL, and PEM; each may be NULL. */
    const char *const *certificates;
    const char        *certificates_text;
};

/* The whole plan, or NULL and one sentence. */
json_t *native_plan(const struct native_spec *spec, struct err *e);

/* What a sandbox made by this plan is made of: the plan itself, and what its sources are on this
 * machine at this moment. Hex digits. */
void native_fingerprint(const json_t *plan, char ret[SHA256_HEX_SIZE]);

/* What is set for every program: PATH, HOME and friends, as a list ended by NULL. */
const char *const *native_environment(const struct native_spec *spec);

struct native {
    int to_init_fd, from_init_fd, control_fd;
};

int native_start(struct native *ret, struct child *jail, struct event_base *base,
                 void (*exited)(void *owner, int status), void *owner, struct err *e);

/* Removes what killed jails left behind, in a program of its own. */
int native_sweep(struct child *sweep, struct event_base        *base,
                 void (*exited)(void *owner, int status), void *owner, struct err *e);

bool        native_is_readable(const char *path); /* as a file of certificates */
const char *native_bundle(void);                  /* this machine's certificates, or NULL */

int native_print_steps(struct err *e); /* the jail's own table, on stdout */
