#include "engine/docker.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "engine/client.h"
#include "engine/endpoint.h"
#include "engine/layout.h"
#include "engine/native.h"
#include "engine/run_id.h"

#define BUNDLE "/.jerboa/certificates"
#define NPMRC "/.jerboa/npmrc"

/* Who code is on another machine, where nothing is anybody's: not root, who could fill the volume
 * at /.jerboa. */
enum { REMOTE_ID = 65534 };

static const char gate_text[] =
#include "gate.cjs.h"
    ;

/* ---- which walls stand ---- */

static const struct engine_gap *gaps(void)
{
    static const struct engine_gap list[] = {
        {"user-namespace", "the daemon decides whether root inside is root outside (userns-remap)"},
        {"uid-range", "containers have FILES_DIR's owner's uid or yours, 65534 on another machine"},
        {"landlock", "containers have none"},
        {0},
    };

    return list;
}

/* ---- the plan: what every container has ---- */

static const char *const walls[] = {
    "--interactive",
    "--rm",
    "--pull=never",
    "--log-driver=none", /* the daemon would keep all that goes through the pipe */
    "--label=mcp-sandbox=true",
    "--read-only",      /* what is writable is below, with a size */
    "--no-healthcheck", /* the image's would have the capabilities that init gives up */
    "--hostname=sandbox",
    "--workdir=/",
    "--stop-timeout=1",
    "--cgroupns=private",  /* where its cgroup lies is nobody's business inside */
    "--oom-score-adj=500", /* as the jail has it: the kernel takes a sandbox first */
    "--security-opt=no-new-privileges",
    "--security-opt=seccomp=/proc/self/fd/3", /* see engine/client.c */
    "--cap-drop=ALL",
    "--cap-add=SETPCAP",
    "--cap-add=SETUID",
    "--cap-add=SETGID",
    "--cap-add=CHOWN", /* for init alone, which gives them up */
    "--user=0:0",
    "--entrypoint=/.jerboa/init",
    NULL,
};

/* Each has the whole size: they are tmpfs of their own, and what is in them is memory, which is
 * limited on the whole. */
static const struct {
    const char *target, *mode;
    bool        is_small; /* only what we ourselves put there */
} writable[] = {
    {"/workspace", "0755", false}, {"/tmp", "1777", false},    {"/var/tmp", "1777", false},
    {"/root", "0700", false},      {"/.jerboa", "0755", true}, {"/opt/node", "0755", true},
};

static void add(json_t *list, char *word_take)
{
    if (json_array_append_new(list, json_string(word_take)) < 0)
        abort(); /* a path that is no UTF-8 was refused before */
    free(word_take);
}

/* Of another machine /.jerboa is a volume. */
static bool is_tmpfs(size_t i, bool is_remote)
{
    return !is_remote || strcmp(writable[i].target, "/.jerboa") != 0;
}

static void add_tmpfs(json_t *list, const struct engine_spec *spec, const struct dialect *d,
                      bool is_remote)
{
    for (size_t i = 0; i < sizeof writable / sizeof writable[0]; i++) {
        long long      bytes = writable[i].is_small ? 1LL << 20 : (long long)spec->disk_bytes;
        autofree char *inodes = str_format(",nr_inodes=%lld", (long long)engine_inodes(bytes));

        if (is_tmpfs(i, is_remote))
            add(list, str_format("--tmpfs=%s:rw,exec,nosuid,nodev,size=%lld,mode=%s%s",
                                 writable[i].target, bytes, writable[i].mode,
                                 d->tmpfs ? d->tmpfs : inodes));
    }
    add(list, str_format("--shm-size=%lld", (long long)spec->disk_bytes));
}

static void add_limits(json_t *list, const struct engine_spec *spec)
{
    long long memory = (long long)spec->memory_bytes;

    add(list, str_format("--memory=%lld", memory));
    add(list, str_format("--memory-swap=%lld", memory)); /* both together: no swap */
    add(list, str_format("--cpus=%lld.%03lld", (long long)spec->cpus_milli / 1000,
                         (long long)spec->cpus_milli % 1000));
    add(list, str_format("--pids-limit=%lld", (long long)spec->pids));
}

/* ---- the plan: what is shown of the host ---- */

static int add_source(json_t *entries, const char *kind, const char *source, const char *target)
{
    return json_array_append_new(
        entries, json_pack("{s:s, s:s, s:s}", "kind", kind, "source", source, "target", target));
}

/* Fields of --mount are separated by commas; in quotes they may hold any. */
static int add_bind(json_t *list, json_t *entries, const char *source, const char *target,
                    bool writable_too, struct err *e)
{
    if (strchr(source, '"') || strchr(source, '\n'))
        return err_set(e, ERR_INVALID,
                       "%.150s: a container cannot be shown a path with quotes or line ends",
                       source);
    if (add_source(entries, "bind", source, target) < 0)
        return err_set(e, ERR_INVALID, "a container cannot be shown a path that is no UTF-8");
    add(list, str_format("--mount=type=bind,\"source=%s\",target=%s%s", source, target,
                         writable_too ? "" : ",readonly"));
    return 0;
}

static const char *bundle_of(const struct engine_spec *spec)
{
    return spec->bundle ? spec->bundle : native_bundle();
}

/* Another machine cannot be shown anything: files of ours are copied into an empty volume that goes
 * with the container, directories of the user are sent through the pipe (sandbox/twin.h). */
static int add_copies(json_t *list, json_t *entries, const struct engine_spec *spec,
                      const char *init, struct err *e)
{
    if (spec->n_binds > 0)
        return err_set(e, ERR_UNAVAILABLE, "a daemon on another machine cannot be shown '%.150s'",
                       spec->binds[0].source);
    add(list, str_dup("--mount=type=volume,target=/.jerboa,volume-nocopy"));
    if (add_source(entries, "copy", init, "/.jerboa/init") < 0 ||
        (bundle_of(spec) && add_source(entries, "copy", bundle_of(spec), BUNDLE) < 0) ||
        (spec->files_dir && add_source(entries, "twin", spec->files_dir, "/workspace/files") < 0) ||
        (spec->dir && add_source(entries, "sent", spec->dir, "/workspace/dir") < 0))
        return err_set(e, ERR_INVALID, "a path that is no UTF-8 cannot be part of a plan");
    return 0;
}

static int add_binds(json_t *list, json_t *entries, const struct engine_spec *spec, bool is_remote,
                     struct err *e)
{
    autofree char *init = program_find("jerboa-init", e);

    if (!init)
        return -1;
    if (is_remote)
        return add_copies(list, entries, spec, init, e);
    TRY(add_bind(list, entries, init, "/.jerboa/init", false, e));
    if (bundle_of(spec))
        TRY(add_bind(list, entries, bundle_of(spec), BUNDLE, false, e));
    if (spec->files_dir)
        TRY(add_bind(list, entries, spec->files_dir, "/workspace/files", true, e));
    if (spec->dir)
        TRY(add_bind(list, entries, spec->dir, "/workspace/dir", false, e));
    for (size_t i = 0; i < spec->n_binds; i++)
        TRY(add_bind(list, entries, spec->binds[i].source, spec->binds[i].target,
                     spec->binds[i].writable, e));
    return 0;
}

/* `file`: it goes in through the pipe. */
static void add_file(json_t *entries, const char *kind, const char *target, const char *text)
{
    if (json_array_append_new(entries, json_pack("{s:s, s:s, s:s}", "kind", kind, "target", target,
                                                 "text", text)) < 0)
        abort();
}

/* ---- the plan ---- */

static void add_network(json_t *list, const struct engine_spec *spec, const struct dialect *d,
                        bool is_remote)
{
    add(list, str_format("--network=%s", spec->host_network ? "host" : "none"));
    if (spec->host_network)
        return;
    add(list, str_dup("--cap-add=NET_ADMIN")); /* init leads all to itself, then gives it up */
    if (d->resolver)
        add(list, str_dup(d->resolver));
    if (!is_remote && access("/proc/sys/net/ipv6", F_OK) == 0) /* else it is left no ::1 */
        add(list, str_dup("--sysctl=net.ipv6.conf.all.disable_ipv6=0"));
}

static void add_words(json_t *list, const struct engine_spec *spec, const struct stat *owner,
                      bool is_remote)
{
    add(list, str_dup("alone"));
    if (!spec->host_network)
        add(list, str_dup("egress"));
    add(list, str_format("user=%u:%u", (unsigned)owner->st_uid, (unsigned)owner->st_gid));
    for (size_t i = 0; i < sizeof writable / sizeof writable[0]; i++)
        if (is_tmpfs(i, is_remote))
            add(list, str_format("own=%s", writable[i].target));
    add(list, str_format("fds=%lld", (long long)spec->fds));
    for (size_t i = 0; i < spec->n_host_loopback; i++)
        add(list, str_format("loopback=%s,%u", spec->host_loopback[i].address,
                             spec->host_loopback[i].port));
}

/* What code writes in FILES_DIR belongs to its owner, if who runs Jerboa may write there, too. */
static int find_owner(const struct engine_spec *spec, const struct dialect *d, bool is_remote,
                      struct stat *ret, struct err *e)
{
    const char *dir = is_remote || d->is_rootless ? NULL : spec->files_dir;
    *ret = (struct stat){.st_uid = geteuid(), .st_gid = getegid()};
    if (is_remote || d->is_rootless)
        ret->st_uid = ret->st_gid = is_remote ? REMOTE_ID : 0;
    if (dir && (euidaccess(dir, R_OK | W_OK | X_OK) < 0 || stat(dir, ret) < 0))
        return err_sys(e, "%.150s", dir);
    return 0;
}

json_t *docker_plan(const struct engine_spec *spec, const struct dialect *d, struct err *e)
{
    bool        is_remote = spec->remote || endpoint_is_remote(spec->engine->name);
    const char *runtime = spec->oci_runtime ? spec->oci_runtime : d->runtime;
    json_t     *list = json_array(), *entries = json_array();
    json_t     *made = json_pack("{s:s, s:b, s:I, s:s*, s:o, s:o}", "program", spec->engine->name,
                                 "remote", is_remote, "diskBytes", (json_int_t)spec->disk_bytes,
                                 "directory", d->directory, "arguments", list, "entries", entries);
    const char *kind = is_remote ? "copy" : "file"; /* of what lies beside init */
    struct stat owner;

    if (!made)
        abort();
    if (spec->strict)
        err_set(e, ERR_UNAVAILABLE, "--strict: the wall '%s' is missing: %s",
                spec->engine->gaps()->name, spec->engine->gaps()->why);
    add(list, str_dup(is_remote ? "create" : "run"));
    for (const char *const *word = walls; *word; word++)
        add(list, str_dup(*word));
    if (spec->strict || find_owner(spec, d, is_remote, &owner, e) < 0 ||
        add_binds(list, entries, spec, is_remote, e) < 0) {
        json_decref(made);
        return NULL;
    }
    add(list, str_format("--label=mcp-server-run-id=%s", run_id()));
    add_limits(list, spec);
    add_tmpfs(list, spec, d, is_remote);
    for (const char *const *word = d->words; word && *word; word++)
        add(list, str_dup(*word));
    if (runtime)
        add(list, str_format("--runtime=%s", runtime));
    add_network(list, spec, d, is_remote);
    add(list, str_dup(spec->runtime_dir)); /* the image */
    add_words(list, spec, &owner, is_remote);
    add_file(entries, kind, layout_gate, gate_text);
    add_file(entries, "file", "/workspace/package.json", "{\"type\":\"module\"}\n");
    if (spec->npmrc)
        add_file(entries, kind, NPMRC, spec->npmrc);
    return made;
}

/* PATH and all else is the image's (init/inherit.h): here is what must be ours. */
static const char node_bundle[] = "NODE_EXTRA_CA_CERTS=" BUNDLE, bundle[] = "SSL_CERT_FILE=" BUNDLE,
                  npmrc[] = "npm_config_globalconfig=" NPMRC;

#define ENVIRONMENT "HOME=/root", "USER=root"

const char *const *docker_environment(const struct engine_spec *spec)
{
    static const char *const lists[2][2][8] = {
        {{ENVIRONMENT}, {ENVIRONMENT, npmrc}},
        {{ENVIRONMENT, node_bundle, bundle}, {ENVIRONMENT, node_bundle, bundle, npmrc}}};

    return lists[bundle_of(spec) != NULL][spec->npmrc != NULL];
}

/* Any address will do for a resolver: all queries go to init. */
static json_t *plan(const struct engine_spec *spec, struct err *e)
{
    return docker_plan(spec, &(struct dialect){.resolver = "--dns=198.18.0.2"}, e);
}

const struct engine docker = {"docker",     plan,          docker_environment, client_start,
                              client_sweep, DOCKER_END_MS, 24 << 20,           gaps};
