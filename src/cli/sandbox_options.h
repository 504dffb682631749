/* sandbox_options - what can be said of a sandbox: options that `run` and `serve` share. */
#pragma once

#include "base/options.h"
#include "cli/engine_choice.h"
#include "cli/install.h"
#include "cli/network.h"
#include "cli/network_limits.h"
#include "engine/engine.h"

struct sandbox_options {
    const char          *network, *files, *image, *engine, *runtime, *installer;
    int64_t              memory_bytes, cpus_milli, timeout_ms, disk_bytes, pids, fresh_ms;
    struct option_list   allow;
    struct egress_limits limits;
    bool                 strict, remote;
    const char          *audit;
    bool                 audit_strict;
    struct engine_choice choice; /* of `engine`, see sandbox_options_check */
};

struct sandbox_options sandbox_options_defaults(void);

#define SANDBOX_OPTIONS_AT(at, member) ((at) + offsetof(struct sandbox_options, member))

/* clang-format off */
#define SANDBOX_OPTIONS_ROWS(at)                                                                   \
    {"memory", 0, OPTION_SIZE, SANDBOX_OPTIONS_AT(at, memory_bytes), "SIZE",                       \
     "memory limit (512m)", .second_env = "SANDBOX_MEMORY_LIMIT"},                                 \
    {"cpus", 0, OPTION_CPUS, SANDBOX_OPTIONS_AT(at, cpus_milli), "N",                              \
     "processors, 0.5 is half of one (1)", .second_env = "SANDBOX_CPU_LIMIT"},                     \
    {"timeout", 0, OPTION_DURATION, SANDBOX_OPTIONS_AT(at, timeout_ms), "TIME",                    \
     "kill a script after this long (30s; 0: never)", .second_env = "RUN_SCRIPT_TIMEOUT",          \
     .second_env_is_ms = true},                                                                    \
    {"disk", 0, OPTION_SIZE, SANDBOX_OPTIONS_AT(at, disk_bytes), "SIZE",                           \
     "cap on /workspace, /tmp and HOME together (half of memory)"},                                \
    {"pids", 0, OPTION_COUNT, SANDBOX_OPTIONS_AT(at, pids), "N", "processes and threads (512)"},   \
    {"network", 0, OPTION_STRING, SANDBOX_OPTIONS_AT(at, network), "POLICY",                       \
     "none, npm (the registries), allow (what --allow says), internet (what is public), "            \
     "host (all that this machine reaches) (internet)"},                                           \
    {"allow", 0, OPTION_LIST, SANDBOX_OPTIONS_AT(at, allow), "RULE",                               \
     "reach HOST, *.DOMAIN, ADDRESS or NET/BITS, with :PORT or :FROM-TO; may be repeated"},        \
    NETWORK_LIMITS_ROWS(SANDBOX_OPTIONS_AT(at, limits)),                                           \
    {"audit", 0, OPTION_STRING, SANDBOX_OPTIONS_AT(at, audit), "FILE",                             \
     "append who ran what, where it connected and how it ended: JSON lines (docs/audit.md)"},      \
    {"audit-strict", 0, OPTION_FLAG, SANDBOX_OPTIONS_AT(at, audit_strict), NULL,                   \
     "refuse what cannot be told there"},                                                          \
    {"files", 0, OPTION_STRING, SANDBOX_OPTIONS_AT(at, files), "DIR",                              \
     "DIR is /workspace/files, writable", .second_env = "FILES_DIR"},                              \
    {"image", 0, OPTION_STRING, SANDBOX_OPTIONS_AT(at, image), "IMAGE",                            \
     "node:lts-slim, node:22, 24.1.0, current …; of a container engine any with Node (node:lts-slim)"},                                 \
    INSTALL_ROW_INSTALLER(SANDBOX_OPTIONS_AT(at, installer)),                                      \
    INSTALL_ROW_FRESH(SANDBOX_OPTIONS_AT(at, fresh_ms)),                                           \
    {"engine", 0, OPTION_STRING, SANDBOX_OPTIONS_AT(at, engine), "ENGINE",                        \
     "native, docker, podman, or auto: native for node images, else docker or podman (auto)"},   \
    {"runtime", 0, OPTION_STRING, SANDBOX_OPTIONS_AT(at, runtime), "NAME",                         \
     "what docker or podman start containers by: runc, crun, runsc … (theirs)"},                   \
    {"remote", 0, OPTION_FLAG, SANDBOX_OPTIONS_AT(at, remote), NULL,                               \
     "the container daemon is on another machine although its socket is here; tcp:// and ssh:// "  \
     "are known to be"},                                                                           \
    INSTALL_ROW_STRICT(SANDBOX_OPTIONS_AT(at, strict))
/* clang-format on */

/* What is off is told in one sentence; what follows from others is filled in. */
int sandbox_options_check(struct sandbox_options *o, struct err *e);

/* A directory that an option names, as a real path that the caller frees. */
int sandbox_options_dir(const char *option, const char *path, char **ret, struct err *e);

/* For its image; NULL: there is none. */
const struct engine *sandbox_options_engine(const struct sandbox_options *o, struct err *e);

/* Without its directories and its runtime; it borrows from `network`. */
struct engine_spec sandbox_options_spec(const struct sandbox_options *o,
                                        const struct network         *network);
