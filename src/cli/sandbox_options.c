#include "cli/sandbox_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "engine/native.h"
#include "store/runtime.h"

enum { PIDS_MIN = 10 };

struct sandbox_options sandbox_options_defaults(void)
{
    return (struct sandbox_options){.image = RUNTIME_DEFAULT,
                                    .engine = "auto",
                                    .installer = INSTALL_INSTALLER,
                                    .memory_bytes = ENGINE_MEMORY_BYTES,
                                    .cpus_milli = ENGINE_CPUS_MILLI,
                                    .timeout_ms = 30000,
                                    .pids = ENGINE_PIDS,
                                    .fresh_ms = INSTALL_FRESH_MS,
                                    .limits = network_limits_defaults};
}

int sandbox_options_check(struct sandbox_options *o, struct err *e)
{
    const int64_t memory_min = 32 << 20, memory_max = 1LL << 40, disk_min = 64 << 10;

    if (o->memory_bytes < memory_min || o->memory_bytes > memory_max)
        return err_set(e, ERR_INVALID,
                       "--memory must be at least 32m, which Node itself needs, and at most 1024g");
    if (o->disk_bytes == 0)
        o->disk_bytes = o->memory_bytes / 2;
    if (o->disk_bytes < disk_min || o->disk_bytes >= o->memory_bytes)
        return err_set(e, ERR_INVALID,
                       "--disk must be at least 64k and less than --memory, which it is part of");
    if (o->pids < PIDS_MIN)
        return err_set(e, ERR_INVALID, "--pids must be at least %d: Node itself needs that",
                       PIDS_MIN);
    if (o->runtime && strcmp(o->engine, native.name) == 0)
        return err_set(e, ERR_INVALID, "--runtime is of --engine docker and podman");
    if (o->remote && strcmp(o->engine, native.name) == 0)
        return err_set(e, ERR_INVALID, "--remote is of --engine docker");
    if (o->audit_strict && !o->audit)
        return err_set(e, ERR_INVALID, "--audit-strict is of --audit FILE, which is missing");
    TRY(network_limits_check(&o->limits, e));
    return engine_choice_make(o->engine, &o->choice, e);
}

int sandbox_options_dir(const char *option, const char *path, char **ret, struct err *e)
{
    struct stat    st;
    autofree char *real = realpath(path, NULL);

    if (!real || stat(real, &st) < 0) {
        bool is_missing = errno == ENOENT;
        err_sys(e, "--%s %s", option, path);
        if (is_missing && e)
            err_append(e, "make it first, with mkdir");
        return -1;
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, "--%s %s is not a directory", option, path);
    *ret = real;
    real = NULL;
    return 0;
}

const struct engine *sandbox_options_engine(const struct sandbox_options *o, struct err *e)
{
    return engine_choice_for(&o->choice, o->image, e);
}

struct engine_spec sandbox_options_spec(const struct sandbox_options *o,
                                        const struct network         *network)
{
    struct engine_spec spec = {.engine = o->choice.of_node,
                               .memory_bytes = o->memory_bytes,
                               .disk_bytes = o->disk_bytes,
                               .cpus_milli = o->cpus_milli,
                               .pids = o->pids,
                               .strict = o->strict,
                               .oci_runtime = o->runtime,
                               .remote = o->remote,
                               .fds = ENGINE_FDS,
                               .host_network = network->is_host};

    npm_inside_plan(&network->npm, &spec);
    return spec;
}
