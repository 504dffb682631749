/* Theory of operation. One layer, step after step, in a process of its own (see main.c): whoever
 * ends that process ends the sandboxes with it, and leaves a half-written entry that the next one
 * takes over.
 *
 *   begin     the entry's lock: one process fills it, others wait here
 *   install   sandbox 1: the entry and the shared cache are writable, the registries are reached,
 *             an .npmrc with the user's tokens lies in its HOME. No code of packages runs.
 *   audit     the lock, here: everything is from the registries, or there is no layer
 *   build     sandbox 2, if a package wants it: of the host it sees node_modules alone, and may
 *             write there. Neither cache nor tokens are there; the .npmrc went with sandbox 1.
 *   commit    into the store; or, when ranges were resolved again and gave the same, not
 *   settle    onto the disk, when whoever asked has been answered
 *
 * Package code writes only below node_modules, so lock and package.json are the installer's. */
#include "deps/make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "deps/audit.h"
#include "deps/cell.h"
#include "deps/installer.h"
#include "deps/npm_inside.h"
#include "deps/scripts.h"
#include "deps/sources.h"
#include "engine/endpoint.h"
#include "engine/native.h"
#include "engine/run_id.h"
#include "sandbox/sandbox.h"
#include "store/container.h"
#include "store/layer.h"
#include "store/store.h"
#include "store/tool.h"

#define MEMORY_BYTES (2LL << 30)
#define LAYER_BYTES_MAX (4LL << 30)

enum {
    LIMIT_S = 300, /* each sandbox */
    NPMRC_MAX = 1 << 20,
    ENV_MAX = 48,
    PAUSE_MS = 50,
    SILENT_MS = 1000,
    OUTPUT_MAX = 2 * CELL_OUTPUT_MAX,
};

struct making {
    const struct make_request *request;
    const struct engine       *engine;
    struct make_result        *result;
    struct npm_config         *config;
    const char                *registries[SOURCES_MAX + 1];
    struct npm_inside          inside;
    char                      *package_json;
    struct layer_set           set;
    struct layer_dep           deps[LAYER_DEPS_MAX];
    struct entry               entry;
    char                       layer_dir[PATH_MAX], cache_dir[PATH_MAX];
    struct layer_hold          old; /* the layer whose ranges are resolved again, or none */
};

/* ---- a sandbox for it ---- */

/* The directory's real path: the jail follows no link. */
static int path_of(int dir_fd, char ret[PATH_MAX], struct err *e)
{
    char    link[40];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
    n = readlink(link, ret, PATH_MAX - 1);
    if (n < 0)
        return err_sys(e, "%s", link);
    ret[n] = '\0';
    return 0;
}

static struct engine_spec sandbox_of(const struct making *m, const struct engine_bind *binds,
                                     size_t n)
{
    struct engine_spec spec = {.engine = m->engine,
                               .memory_bytes = MEMORY_BYTES,
                               .disk_bytes = MEMORY_BYTES / 2,
                               .cpus_milli = sysconf(_SC_NPROCESSORS_ONLN) * 1000,
                               .pids = ENGINE_PIDS,
                               .fds = 4096,
                               .strict = m->request->strict,
                               .runtime_dir = m->request->runtime_dir,
                               .binds = binds,
                               .n_binds = n};

    npm_inside_plan(&m->inside, &spec);
    return spec;
}

static void add_env(const char **env, const char *const *more)
{
    size_t n = 0;

    while (env[n])
        n++;
    for (; *more && n < ENV_MAX - 1; more++)
        env[n++] = *more;
}

static int is_disk_full(int dir_fd)
{
    struct statvfs st;

    return fstatvfs(dir_fd, &st) == 0 && st.f_bavail * st.f_frsize < 1 << 20;
}

/* What ended it, if that was not its own doing. 0: it was. */
static int check_end(struct making *m, const char *who, const struct cell_result *r, struct err *e)
{
    if (r->outgrown)
        return err_set(e, ERR_LIMIT, "%s: the dependencies take more than %lld GiB", who,
                       LAYER_BYTES_MAX >> 30);
    if (r->run.verdict == VERDICT_TIMEOUT)
        return err_set(e, ERR_TIMEOUT, "%s: no end within %d seconds", who, LIMIT_S);
    if (r->run.verdict == VERDICT_OOM)
        return err_set(e, ERR_LIMIT, "%s: more than %lld GiB of memory are needed", who,
                       MEMORY_BYTES >> 30);
    if (r->run.verdict == VERDICT_SANDBOX_LOST) {
        *e = r->run.err;
        return err_wrap(e, "the sandbox of %s", who);
    }
    if (r->run.verdict != VERDICT_OK && is_disk_full(m->entry.dir_fd)) {
        err_set(e, ERR_INTERNAL, "the disk is full");
        e->sys = ENOSPC;
        return store_explain(e);
    }
    return 0;
}

static void keep_output(struct making *m, struct cell_result *r)
{
    struct buf *all = &m->result->output;

    if (all->size + r->output.size >= all->max)
        buf_drop(all, all->size);
    buf_add(all, r->output.data, r->output.size);
}

/* ---- install ---- */

/* Why the registry was not reached, as the server's side of the network saw it. */
static void add_refusal(const struct cell_result *r, struct err *e)
{
    const json_t *row = json_array_get(r->refused, 0);
    const char   *host = json_string_value(json_object_get(row, "host"));
    const char   *rule = json_string_value(json_object_get(row, "rule"));
    char          text[ERR_MSG_MAX];

    if (!host || !rule)
        return;
    snprintf(text, sizeof text, "%.80s: %.120s", host, rule);
    err_append(e, text);
}

static int install_ended(struct making *m, const struct installer *i, struct cell_result *r,
                         struct err *e)
{
    if (r->run.verdict == VERDICT_OK)
        return 0;
    TRY(check_end(m, i->name, r, e));
    if (r->run.facts.signal)
        return err_set(e, ERR_INTERNAL, "%s was ended by signal %d", i->name, r->run.facts.signal);
    installer_reason(i, buf_text(&r->output), e);
    if (e->kind == ERR_UNAVAILABLE)
        add_refusal(r, e);
    return -1;
}

struct proxies {
    char        https[NPM_CONFIG_URL_MAX + 16], http[NPM_CONFIG_URL_MAX + 16];
    const char *env[3];
};

static void name_proxy(const char *proxy, struct proxies *ret)
{
    snprintf(ret->https, sizeof ret->https, "HTTPS_PROXY=%s", proxy);
    snprintf(ret->http, sizeof ret->http, "HTTP_PROXY=%s", proxy);
    ret->env[0] = ret->https;
    ret->env[1] = ret->http;
}

/* Registries, and the proxy that leads to them. */
static struct policy *policy_of(const struct making *m, const char *proxy, struct err *e)
{
    const char *list[SOURCES_MAX + 2] = {0};
    const char *no_rules[] = {NULL};
    size_t      n = 0;

    for (; m->registries[n]; n++)
        list[n] = m->registries[n];
    list[n] = proxy;
    return policy_new("npm", no_rules, list, e);
}

static int run_installer(struct making *m, const struct installer *i, const char *bun_dir,
                         struct err *e)
{
    const struct engine_bind binds[] = {{m->layer_dir, INSTALLER_LAYER, true},
                                        {m->cache_dir, INSTALLER_CACHE, true},
                                        {bun_dir, INSTALLER_BUN, false}};
    const char              *proxy = sources_proxy(m->config), *env[ENV_MAX] = {0};
    struct proxies           proxies = {0};
    struct policy           *policy = policy_of(m, proxy, e);
    struct cell_result       result;
    autobuf struct buf       npmrc;
    int                      done = -1;

    buf_init(&npmrc, NPMRC_MAX);
    if (!policy || sources_npmrc(m->config, &npmrc, e) < 0) {
        policy_free(policy);
        return -1;
    }
    struct run_file  file = {"/root/.npmrc", npmrc.data, npmrc.size};
    struct cell_spec spec = {.sandbox = sandbox_of(m, binds, i->needs_bun ? 3 : 2),
                             .policy = policy,
                             .run = {.files = &file,
                                     .n_files = 1,
                                     .argv = (const char **)i->argv,
                                     .env = env,
                                     .cwd = INSTALLER_LAYER,
                                     .timeout_ms = (int64_t)LIMIT_S * 1000},
                             .grown_fd = m->entry.dir_fd,
                             .grown_max = LAYER_BYTES_MAX};
    if (proxy)
        name_proxy(proxy, &proxies);
    add_env(env, m->engine->environment(&spec.sandbox));
    add_env(env, m->inside.environment);
    add_env(env, i->env);
    add_env(env, proxies.env);
    if (cell_run(&spec, &result, e) == 0) {
        keep_output(m, &result);
        done = install_ended(m, i, &result, e);
        cell_result_done(&result);
    }
    policy_free(policy);
    return done;
}

static int install(struct making *m, const struct installer *i, struct err *e)
{
    char       bun_dir[PATH_MAX] = "";
    autofd int bun_fd = -1;

    tree_remove(m->entry.dir_fd); /* what another installer left */
    TRY(file_write_text(m->entry.dir_fd, "package.json", m->package_json, e));
    if (i->needs_bun)
        TRY(tool_ensure(&tool_bun, bun_dir, &bun_fd, e));
    return run_installer(m, i, bun_dir, e);
}

/* Which one did it, in the end. */
static const struct installer *install_by_any(struct making *m, struct err *e)
{
    const struct installer *first = installer_find(m->request->installer, e), *other;
    struct err              second = {0};

    if (!first || install(m, first, e) == 0)
        return first;
    other = installer_other(first, e);
    if (!other)
        return NULL;
    snprintf(m->result->note, sizeof m->result->note, "%.160s; %s is tried instead", e->msg,
             other->name);
    dprintf(2, "%s\n", m->result->note);
    if (install(m, other, &second) == 0)
        return other;
    if (e->kind == ERR_INTERNAL || second.kind == ERR_NOT_FOUND)
        *e = second; /* it knows better */
    return NULL;
}

/* ---- audit ---- */

static int read_lock(int dir_fd, const char *name, char **ret_text, struct err *e)
{
    autofd int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "%s", name);
    if (fd_read_text(fd, AUDIT_LOCK_MAX, ret_text, NULL, e) < 0)
        return err_wrap(e, "%s", name);
    return 0;
}

/* Whether the layer that is there has the very same packages. */
static bool is_unchanged(const struct making *m, const struct installer *i, const char *lock)
{
    autofree char *old = NULL;

    return m->old.fd >= 0 && read_lock(m->old.fd, i->lock, &old, NULL) == 0 && old && lock &&
           strcmp(old, lock) == 0;
}

/* ---- build ---- */

static int build_ended(struct making *m, struct cell_result *r, struct err *e)
{
    if (r->run.verdict == VERDICT_OK)
        return 0;
    TRY(check_end(m, "the packages' install scripts", r, e));
    return scripts_reason(buf_text(&r->output), e);
}

/* All scripts run, whoever wrote them: npm's list of trusted packages is for machines without a
 * wall around them. npm's cache is a place that goes with the sandbox. */
static int build(struct making *m, int modules_fd, struct err *e)
{
    static const char       *argv[] = {"/opt/node/bin/npm", "rebuild", "--no-progress",
                                       "--no-update-notifier", NULL};
    static const char *const more[] = {"npm_config_nodedir=/opt/node",
                                       "npm_config_cache=/tmp/.npm",
                                       "npm_config_color=false",
                                       "npm_config_logs_max=0",
                                       "npm_config_dangerously_allow_all_scripts=true",
                                       NULL};
    char                     modules[PATH_MAX];
    struct engine_bind       bind = {modules, "/workspace/node_modules", true};
    const char              *env[ENV_MAX] = {0};
    struct policy           *policy = policy_of(m, NULL, e);
    struct run_file          file = {"/workspace/package.json", (const uint8_t *)m->package_json,
                                     strlen(m->package_json)};
    struct cell_spec         spec = {.sandbox = sandbox_of(m, &bind, 1),
                                     .policy = policy,
                                     .run = {.files = &file,
                                             .n_files = 1,
                                             .argv = argv,
                                             .env = env,
                                             .cwd = "/workspace",
                                             .timeout_ms = (int64_t)LIMIT_S * 1000},
                                     .grown_fd = m->entry.dir_fd,
                                     .grown_max = LAYER_BYTES_MAX};
    struct cell_result       result;
    int                      done = -1;

    add_env(env, m->engine->environment(&spec.sandbox));
    add_env(env, m->inside.environment);
    add_env(env, more);
    if (policy && path_of(modules_fd, modules, e) == 0 && cell_run(&spec, &result, e) == 0) {
        keep_output(m, &result);
        done = build_ended(m, &result, e);
        cell_result_done(&result);
    }
    policy_free(policy);
    return done;
}

static int build_if_wanted(struct making *m, struct err *e)
{
    autofd int modules =
        openat(m->entry.dir_fd, "node_modules", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int wanted;

    if (modules < 0)
        return err_sys(e, "node_modules of the new layer");
    wanted = scripts_look(modules, e);
    if (wanted <= 0)
        return wanted;
    dprintf(2, "running install scripts of packages\n");
    return build(m, modules, e);
}

/* ---- the whole ---- */

/* 1: another process made it. */
static int begin(struct making *m, struct err *e)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    autofd int            layers = store_ensure("layers", e);
    int                   begun;

    if (layers < 0)
        return store_explain(e);
    entry_sweep(layers);
    for (int ms = 0;; ms += PAUSE_MS) {
        begun = layer_begin(m->request->key, m->request->max_age_ms, &m->entry, e);
        if (begun != 2)
            return begun;
        if (ms == SILENT_MS)
            dprintf(2, "another jerboa installs the same dependencies: waiting for it\n");
        nanosleep(&pause, NULL);
    }
}

/* 1: as it was. */
static int fill(struct making *m, struct err *e)
{
    const struct installer *i;
    autofree char          *lock = NULL;
    autofd int cache = store_ensure("cache", e), store = store_ensure("", e), held = -1;

    if (cache < 0 || store < 0)
        return store_explain(e);
    held = entry_hold(store, "cache", e); /* `jerboa gc` leaves it to us meanwhile */
    if (held < 0)
        return -1;
    TRY(path_of(cache, m->cache_dir, e));
    TRY(path_of(m->entry.dir_fd, m->layer_dir, e));
    i = install_by_any(m, e);
    if (!i)
        return -1;
    TRY(read_lock(m->entry.dir_fd, i->lock, &lock, e));
    TRY(i->audit(lock, m->registries, e));
    if (is_unchanged(m, i, lock))
        return 1;
    return build_if_wanted(m, e);
}

/* The registry is out of reach, but there is what it gave before. */
static bool can_use_old(struct making *m, const struct err *e)
{
    if (m->old.fd < 0 || e->kind != ERR_UNAVAILABLE)
        return false;
    snprintf(m->result->note, sizeof m->result->note,
             "ranges could not be resolved again, what was installed before is used: %.140s",
             e->msg);
    m->result->was_there = true;
    return true;
}

static int make(struct making *m, struct err *e)
{
    int begun = begin(m, e), filled;

    if (begun != 0) {
        m->result->was_there = begun == 1;
        return begun < 0 ? -1 : 0;
    }
    filled = fill(m, e);
    if (filled == 0) {
        layer_release(&m->old); /* what takes its place removes it, unless somebody else uses it */
        TRY(layer_commit(&m->entry, &m->set, e));
        m->result->layer = m->entry;
        return 0;
    }
    layer_abort(&m->entry);
    if (filled == 1)
        layer_refresh(&m->old);
    return filled == 1 || can_use_old(m, e) ? 0 : -1;
}

/* Containers of ours are nobody's leftovers while we live. */
static int lock_containers(const struct making *m, struct err *e)
{
    if (m->engine == &native)
        return -1;
    if (m->request->remote ||
        endpoint_is_remote(m->engine->name)) /* what is installed there would stay there */
        return err_set(e, ERR_UNAVAILABLE,
                       "a daemon on another machine cannot install for this one, and the native "
                       "engine cannot work here: 'jerboa doctor' tells why");
    return container_lock(endpoint_name(m->engine->name).text, run_id(), e);
}

static int prepare(struct making *m, struct err *e)
{
    const struct make_request *r = m->request;
    autojson json_t *package = json_pack("{s:s, s:b, s:O}", "type", "module", "private", 1,
                                         "dependencies", r->dependencies);
    struct policy   *policy;
    const char      *name;
    json_t          *range;
    int              done;

    json_object_foreach ((json_t *)r->dependencies, name, range)
        if (m->set.n < LAYER_DEPS_MAX)
            m->deps[m->set.n++] = (struct layer_dep){name, json_string_value(range)};
    m->set.deps = m->deps;
    m->set.node_version = r->node_version;
    m->set.installer = r->identity;
    m->package_json = package ? json_dumps(package, JSON_INDENT(2)) : NULL;
    m->config = npm_config_load(NPM_CONFIG_USER, e);
    if (!m->package_json || !m->config)
        return m->config ? err_set(e, ERR_INVALID, "no package.json can be made") : -1;
    npm_config_registries(m->config, m->registries, SOURCES_MAX);
    policy = policy_of(m, NULL, e);
    done = policy ? npm_inside_init(&m->inside, m->config, policy, e) : -1;
    if (done == 0 && m->engine != &native)
        done = npm_inside_bundle(&m->inside, e);
    policy_free(policy);
    return done;
}

int make_layer(const struct make_request *r, struct make_result *ret, struct err *e)
{
    struct making m = {.request = r,
                       .engine = r->engine ? engine_find(r->engine) : &native,
                       .result = ret,
                       .old.fd = -1};
    autofd int    locked = -1;
    int           done;

    *ret = (struct make_result){.layer.dir_fd = -1};
    buf_init(&ret->output, OUTPUT_MAX);
    if (!m.engine)
        return err_set(e, ERR_INVALID, "the engine '%.40s' is unknown", r->engine);
    locked = lock_containers(&m, e);
    done = e->kind ? -1 : prepare(&m, e);
    if (done == 0) {
        layer_find(r->key, &m.old, 0, NULL);
        done = make(&m, e);
    }
    if (locked >= 0 && !sandbox_may_have_left())
        container_unlock(endpoint_name(m.engine->name).text, run_id());
    layer_release(&m.old);
    npm_inside_done(&m.inside);
    npm_config_free(m.config);
    free(m.package_json);
    return done;
}

void make_settle(struct make_result *r)
{
    if (r->layer.dir_fd >= 0)
        layer_settle(&r->layer);
}

void make_result_done(struct make_result *r)
{
    buf_done(&r->output);
}
