/* engine - a way to start jerboa-init behind walls and to hand back its stdin and stdout.
 *
 * An engine is a table of functions; its file, its symbol and its name as an option are one word.
 * What the user asked for and what the host looks like (engine_spec) become a plan: a value that
 * can be printed, compared and tested without any rights. Starting it spawns one program, which
 * lives as long as the sandbox does and whose end is the sandbox's. All else goes through the pipe,
 * and no engine knows of it. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "base/sha256.h"
#include "loop/child.h"

struct engine;

/* What a sandbox has unless the user says otherwise; of the memory, half may be disk. */
enum {
    ENGINE_MEMORY_BYTES = 512 << 20,
    ENGINE_CPUS_MILLI = 1000,
    ENGINE_PIDS = 512,
    ENGINE_FDS = 1024,
};

/* A directory or file of the host; whoever owns it outside is root inside. */
struct engine_bind {
    const char *source; /* a real path */
    const char *target; /* absolute, inside */
    bool        writable;
};

/* A place on this machine's loopback. */
enum { ENGINE_PLACES_MAX = 16 };

struct engine_place {
    char     address[46];
    uint16_t port;
};

struct engine_spec {
    const struct engine *engine;
    int64_t              memory_bytes, disk_bytes, cpus_milli, pids, fds;
    bool                 host_network; /* else its connections go through the pipe */
    bool                 strict;       /* refuse when a wall is missing */
    bool                 remote;      /* the daemon is on another machine, whatever it looks like */
    const char          *runtime_dir; /* bin/node below it; absolute */
    const char          *oci_runtime; /* or NULL; what a container engine starts containers by */
    const char *files_dir; /* or NULL; writable at /workspace/files, belongs to its owner */
    const char *dir;       /* or NULL; read-only at /workspace/dir */
    const struct engine_bind *binds; /* what else it sees */
    size_t                    n_binds;
    const char               *npmrc; /* or NULL; the text of /etc/npmrc */

    /* Registries that are reached although they are on the host's loopback. */
    const struct engine_place *host_loopback;
    size_t                     n_host_loopback;

    /* Trusted beside native_bundle: files, a list ended by NULL, and PEM; each may be NULL. */
    const char *const *certificates;
    const char        *certificates_text;
    const char        *bundle; /* all of them in one file, for engines that compose none; or NULL:
                                  there is native_bundle alone */
};

enum { ENGINE_NAME_SIZE = 64 };

/* Where its init is reached. */
struct engine_ends {
    int to_init_fd, from_init_fd;
    int control_fd; /* to a jail, which gets the plan there; -1: there is none, and init stands in
                       for it */
    int  said_fd;   /* what the program says when it fails, non-blocking; or -1 */
    char name[ENGINE_NAME_SIZE]; /* what a daemon knows it by, for `sweep`; or "" */
};

/* A wall that native has and this one does not. */
struct engine_gap {
    const char *name, *why;
};

struct engine {
    const char *name;
    /* The whole plan, or NULL and one sentence. Its `entries` are what is seen inside; those that
     * are of the host have a `source`. */
    json_t *(*plan)(const struct engine_spec *spec, struct err *e);
    /* What is set for every program: PATH, HOME and friends, as a list ended by NULL. */
    const char *const *(*environment)(const struct engine_spec *spec);
    int (*start)(const json_t *plan, struct engine_ends *ret, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e);
    /* Removes what a sandbox left whose program failed, in a program of its own. */
    int (*sweep)(const struct engine *engine, const char *name, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e);
    int     end_ms; /* its program has so long to end, once its pipe is closed; then it is killed */
    int64_t ahead_bytes; /* a sandbox with a Node held takes less, all in all: docs/engines.md */
    /* Ended by a row without a name; NULL: the jail tells its walls itself. */
    const struct engine_gap *(*gaps)(void);
};

/* What a sandbox made by this plan is made of: the plan itself, and what its sources are on this
 * machine at this moment. Hex digits. */
void engine_fingerprint(const json_t *plan, char ret[SHA256_HEX_SIZE]);

/* Those of the table in engine.c; NULL: there is none of that name. */
const struct engine *engine_find(const char *name);
/* A list as the jail tells it (jail/walls.h), of what is missing only; NULL: the jail tells. */
json_t *engine_walls(const struct engine *engine);

/* The first one of this kind, or NULL. */
const json_t *engine_entry(const json_t *plan, const char *kind);

/* How many files fit into a disk of that size; for engines. */
int64_t engine_inodes(int64_t disk_bytes);

/* A pipe, for frames; for engines. Large: best effort, since all pipes of a user together are
 * limited, and those in containers of his count as well. */
enum { ENGINE_PIPE_USUAL = 0, ENGINE_PIPE_LARGE = 1 << 20 };

int engine_open_pipe(int *ret_read, int *ret_write, int bytes, struct err *e);
