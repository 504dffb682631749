/* jerboa run - one script in a fresh sandbox, in the foreground: streams through, exit status out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/options.h"
#include "base/str.h"
#include "cli/install.h"
#include "cli/run_trail.h"
#include "cli/sandbox_options.h"
#include "cli/script.h"
#include "cli/session.h"
#include "cli/verb.h"
#include "engine/endpoint.h"
#include "engine/layout.h"
#include "engine/native.h"
#include "engine/run_id.h"
#include "sandbox/result.h"
#include "sandbox/sandbox.h"
#include "store/container.h"
#include "store/runtime.h"

enum {
    EXIT_JERBOA = 125, /* Jerboa failed, bad usage and missing file included */
    ENV_MAX = OPTION_LIST_MAX + 16,
};

struct run_options {
    struct sandbox_options sandbox;
    const char            *code, *dir;
    struct option_list     env, deps;
    bool                   stats, json, explain;
};

#define AT(member) offsetof(struct run_options, member)
static const struct option options[] = {
    {"eval", 'e', OPTION_STRING, AT(code), "CODE", "run this code instead of a file"},
    SANDBOX_OPTIONS_ROWS(AT(sandbox)),
    {"dir", 0, OPTION_STRING, AT(dir), "DIR",
     "DIR is /workspace/dir, read-only; a FILE below it runs there"},
    {"dep", 0, OPTION_LIST, AT(deps), "NAME[@RANGE]",
     "install this npm package first (RANGE: latest); may be repeated"},
    {"env", 0, OPTION_LIST, AT(env), "K=V", "set a variable; may be repeated"},
    {"stats", 0, OPTION_FLAG, AT(stats), NULL,
     "verdict, time, memory and connections on stderr at the end"},
    {"json", 0, OPTION_FLAG, AT(json), NULL,
     "verdict, usage, refusals and missing walls as a line of JSON on stderr at the end"},
    {"explain", 0, OPTION_FLAG, AT(explain), NULL,
     "print the sandbox plan and the launcher's steps, run nothing"},
    {0},
};
#undef AT

static const char details[] =
    "FILE is an ES module (or .cjs, .ts); '-' reads it from stdin. ARGS go to the script. Only\n"
    "FILE goes in, as /workspace/FILE. Options stand before FILE; each is also read from the\n"
    "environment (--memory: JERBOA_MEMORY; what may be repeated: one a line).\n"
    "Sizes: 64k, 512m, 1g. Times: 250ms, 30s, 5m, 1h.\n\n"
    "npm inside is told your registries, without tokens. Certificates of SSL_CERT_FILE,\n"
    "NODE_EXTRA_CA_CERTS and npm's cafile and ca are trusted inside, too.\n\n"
    "SIGINT, SIGTERM and SIGHUP go to the script; a second one ends it.\n\n"
    "Exit status: the script's own; 128+n when signal n killed it; 137 out of memory; 124 at the\n"
    "timeout; 125 when Jerboa failed, bad usage included.\n";

/* ---- from options to a plan ---- */

static int check_env(const struct option_list *env, struct err *e)
{
    for (size_t i = 0; i < env->n; i++)
        if (!strchr(env->items[i], '=') || env->items[i][0] == '=')
            return err_set(e, ERR_INVALID, "--env '%.60s' is not of the form K=V", env->items[i]);
    return 0;
}

static int find_image(const struct run_options *o, const struct engine *engine, struct runtime *ret,
                      struct err *e)
{
    const struct engine_choice *choice = &o->sandbox.choice;
    struct endpoint_name        daemon = endpoint_name(engine->name);

    if (container_lock(daemon.text, run_id(), e) < 0 ||
        container_ensure(engine->name, o->sandbox.image, ret, e) < 0)
        return engine_choice_explain(choice, o->sandbox.image, e);
    container_sweep(engine->name, daemon.text);
    if (*choice->why)
        fprintf(stderr, "jerboa: native cannot work here, so it is run by %s: %s\n", engine->name,
                choice->why);
    return 0;
}

/* A plan that is only shown fetches nothing. */
static int find_runtime(const struct run_options *o, const struct engine *engine,
                        struct runtime *ret, struct err *e)
{
    int held; /* until we exit, and with us the sandbox */

    if (engine != &native && o->explain) {
        *ret = (struct runtime){0};
        return str_copy(ret->dir, sizeof ret->dir, o->sandbox.image);
    }
    if (engine != &native)
        return find_image(o, engine, ret, e);
    if (!o->explain)
        return runtime_ensure_held(o->sandbox.image, ret, &held, e);
    if (runtime_find(o->sandbox.image, ret, e) == 0 || e->kind != ERR_NOT_FOUND)
        return e->kind ? -1 : 0;
    *ret = (struct runtime){.dir = "/not-fetched-yet"};
    return 0;
}

static json_t *make_plan(const struct run_options *o, struct engine_spec spec,
                         struct runtime *ret_runtime, struct err *e)
{
    autofree char *files = NULL, *dir = NULL;
    struct runtime runtime = {0};

    spec.engine = sandbox_options_engine(&o->sandbox, e);
    if (!spec.engine)
        return NULL;
    if ((o->sandbox.files && sandbox_options_dir("files", o->sandbox.files, &files, e) < 0) ||
        (o->dir && sandbox_options_dir("dir", o->dir, &dir, e) < 0) ||
        find_runtime(o, spec.engine, &runtime, e) < 0)
        return NULL;
    if (runtime.note[0])
        fprintf(stderr, "jerboa: %s\n", runtime.note);
    if (spec.host_network)
        fprintf(stderr, "jerboa: warning: --network host: the script reaches all that this machine "
                        "reaches\n");
    spec.runtime_dir = runtime.dir;
    spec.files_dir = files;
    spec.dir = dir;
    *ret_runtime = runtime;
    // cppcheck-suppress returnDanglingLifetime ; a plan does not point to what it was made of
    return spec.engine->plan(&spec, e);
}

/* Whether the list has a variable of the same name. */
static bool has_key(const char *const *list, size_t n, const char *item)
{
    size_t key = strcspn(item, "=") + 1;

    for (size_t i = 0; i < n; i++)
        if (strncmp(list[i], item, key) == 0)
            return true;
    return false;
}

/* The user's variables, the last of each name, then those of the engine that he did not set. */
static void compose_env(const struct run_options *o, const char *const *base,
                        const char *const *more, const char **ret)
{
    size_t n = 0;

    for (size_t i = o->env.n; i > 0; i--)
        if (!has_key(ret, n, o->env.items[i - 1]))
            ret[n++] = o->env.items[i - 1];
    for (; *base; base++)
        if (!has_key(ret, n, *base))
            ret[n++] = *base;
    for (; *more; more++)
        if (!has_key(ret, n, *more))
            ret[n++] = *more;
    ret[n] = NULL;
}

/* Why it ended, when that is not the script's own doing. */
static void tell_verdict(const struct run_options *o, const struct run_result *r)
{
    switch (r->verdict) {
    case VERDICT_SANDBOX_LOST:
        fprintf(stderr, "jerboa: %s\n", r->err.msg);
        break;
    case VERDICT_TIMEOUT:
        fprintf(stderr, "jerboa: timeout: killed after %lld ms (--timeout)%s\n",
                (long long)o->sandbox.timeout_ms,
                r->facts.watched ? ", and for want of a cgroup all that ran beside it" : "");
        break;
    case VERDICT_OOM:
        if (r->facts.heap_exhausted)
            fprintf(stderr, "jerboa: oom: V8's heap limit was reached, which follows --memory\n");
        else
            fprintf(stderr, "jerboa: oom: the memory limit of %lld MiB was reached (--memory)%s\n",
                    (long long)(o->sandbox.memory_bytes >> 20),
                    r->facts.watched ? ", as sampled for want of a cgroup" : "");
        break;
    case VERDICT_PIDS:
        fprintf(stderr, "jerboa: pids: more than %lld processes and threads (--pids)\n",
                (long long)o->sandbox.pids);
        break;
    case VERDICT_DISK:
        if (r->err.kind) { /* the script itself found no room */
            fprintf(stderr, "jerboa: %s\n", r->err.msg);
            break;
        }
        fprintf(stderr,
                "jerboa: disk: no block or no inode is left in the %lld KiB of /workspace, /tmp "
                "and HOME (--disk)\n",
                (long long)(o->sandbox.disk_bytes >> 10));
        break;
    default:
        break;
    }
}

static void print_stats(const struct run_result *r)
{
    const double mib = 1 << 20;

    fprintf(
        stderr,
        "verdict %s, wall %lld ms, cpu %lld ms, peak memory %.1f MiB (largest process %.1f MiB)\n",
        verdict_name(r->verdict), (long long)r->wall_ms, (long long)(r->cpu_us / 1000),
        (double)r->peak_bytes / mib, (double)r->max_rss_bytes / mib);
}

static void print_json(const struct session_result *r)
{
    autojson json_t *result = result_json(&r->run, r->walls, r->refused);

    json_dumpf(result, stderr, JSON_COMPACT);
    fputc('\n', stderr);
}

/* ---- the verb ---- */

static int load_script(const struct run_options *o, int argc, char **argv, struct script *ret,
                       int *ret_used, struct err *e)
{
    *ret_used = 0;
    if (o->code)
        return script_from_text(ret, o->code);
    if (argc == 0)
        return err_set(e, ERR_INVALID, "nothing to run: jerboa run FILE, -e CODE, or -");
    *ret_used = 1;
    if (strcmp(argv[0], "-") == 0)
        return script_from_stdin(ret, e);
    return script_from_file(ret, argv[0], o->dir, e);
}

static int explain(struct run_options *o, const struct network *network, struct err *e)
{
    struct runtime   runtime;
    autojson json_t *plan = make_plan(o, sandbox_options_spec(&o->sandbox, network), &runtime, e);

    if (!plan)
        return -1;
    if (json_dumpf(plan, stdout, JSON_INDENT(2)) < 0)
        return err_set(e, ERR_INTERNAL, "the plan cannot be printed");
    printf("\n");
    if (sandbox_options_engine(&o->sandbox, e) != &native)
        return 0;
    printf("\n");
    return native_print_steps(e);
}

static void tell_result(const struct run_options *o, const struct session_result *r)
{
    tell_verdict(o, &r->run);
    if (*r->files_note)
        fprintf(stderr, "jerboa: not everything reached --files: %s\n", r->files_note);
    network_tell(r->refused, o->stats ? r->connections : NULL);
    if (o->stats)
        print_stats(&r->run);
    if (o->json)
        print_json(r);
}

static int run_with(const struct run_options *o, const struct network *network, const json_t *plan,
                    const struct install *install, const struct script *script,
                    struct run_trail *trail, int argc, char **argv, struct err *e)
{
    struct engine_spec    sandbox = sandbox_options_spec(&o->sandbox, network);
    const struct engine  *engine = sandbox_options_engine(&o->sandbox, e);
    autofree const char **args = calloc((size_t)argc + 3, sizeof *args);
    const char           *env[ENV_MAX];
    struct run_file       files[2];
    struct run_spec       spec = {.files = files,
                                  .argv = args,
                                  .env = env,
                                  .cwd = layout_workspace,
                                  .has_stdin = !script->took_stdin,
                                  .timeout_ms = o->sandbox.timeout_ms};
    struct egress_spec    egress = {.operator_policy = network->policy,
                                    .limits = o->sandbox.limits,
                                    .watch = telling_watch(&trail->telling)};
    struct session_result result;

    if (!args)
        abort();
    if (install->package_json)
        files[spec.n_files++] =
            (struct run_file){"/workspace/package.json", (const uint8_t *)install->package_json,
                              strlen(install->package_json)};
    if (script->code)
        files[spec.n_files++] =
            (struct run_file){script->path, (const uint8_t *)script->code, script->size};
    args[0] = layout_node;
    args[1] = script->path;
    for (int i = 0; i < argc; i++)
        args[i + 2] = argv[i];
    compose_env(o, engine->environment(&sandbox), network->npm.environment, env);
    TRY(session_run(engine, plan, network->is_host ? NULL : &egress,
                    *install->hold.dir ? install->hold.dir : NULL, &spec, &result, e));
    run_trail_end(trail, &result.run);
    tell_result(o, &result);
    session_result_done(&result);
    return result.status;
}

/* The Node that installs dependencies: of a container, one outside where native works. */
static int find_installing(const struct run_options *o, const struct runtime *runtime,
                           struct runtime *ret, const struct engine **ret_engine, struct err *e)
{
    const struct engine *engine = sandbox_options_engine(&o->sandbox, e);
    char                 image[32];
    int                  held;

    *ret = *runtime;
    *ret_engine = engine;
    if (o->deps.n == 0 || engine == &native)
        return 0;
    TRY(container_sibling(runtime, image, e)); /* wherever they are installed, they are for it */
    if (!o->sandbox.choice.native_works)
        return 0;
    *ret_engine = &native;
    return runtime_ensure_held(image, ret, &held, e);
}

static int run_script(struct run_options *o, const struct network *network,
                      const struct script *script, int argc, char **argv, struct err *e)
{
    struct runtime   runtime;
    autojson json_t *plan = make_plan(o, sandbox_options_spec(&o->sandbox, network), &runtime, e);
    struct runtime   installing;
    struct install_spec wanted = {.deps = &o->deps,
                                  .installer = o->sandbox.installer,
                                  .fresh_ms = o->sandbox.fresh_ms,
                                  .strict = o->sandbox.strict,
                                  .runtime = &installing,
                                  .remote = o->sandbox.remote};
    struct install      install;
    struct run_trail    trail;
    const char         *policy = network->is_host ? "host" : policy_name(network->policy);
    int                 status;

    if (!plan || run_trail_begin(&trail, &o->sandbox, policy, script, &o->deps, e) < 0)
        return -1;
    status = find_installing(o, &runtime, &installing, &wanted.engine, e);
    if (status == 0)
        status = install_deps(&wanted, &install, e);
    if (status == 0) {
        status = run_with(o, network, plan, &install, script, &trail, argc, argv, e);
        install_done(&install);
    }
    run_trail_end(&trail, NULL);
    const struct engine *engine = sandbox_options_engine(&o->sandbox, e);
    if (status >= 0 && !sandbox_may_have_left() && engine != &native) /* its container is gone */
        container_unlock(endpoint_name(engine->name).text, run_id());
    return status;
}

static int run_or_explain(struct run_options *o, const struct network *network, int argc,
                          char **argv, struct err *e)
{
    struct script script = {0};
    int           used, status;

    if (o->explain)
        return explain(o, network, e);
    status = load_script(o, argc, argv, &script, &used, e);
    if (status == 0)
        status = run_script(o, network, &script, argc - used, argv + used, e);
    script_done(&script);
    return status;
}

static int run_verb(struct run_options *o, int argc, char **argv, struct err *e)
{
    struct network network = {0};
    const char    *env_code;
    int            used, status;

    TRY(options_from_env(options, o, e));
    env_code = o->code;
    o->code = NULL;
    TRY(options_from_args(options, o, argc, argv, &used, e));
    argc -= used, argv += used;
    if (argc == 0 && !o->code)
        o->code = env_code; /* a FILE on the command line wins */
    TRY(sandbox_options_check(&o->sandbox, e));
    TRY(check_env(&o->env, e));
    status = network_init(&network, o->sandbox.network, &o->sandbox.allow, e);
    if (status == 0 && sandbox_options_engine(&o->sandbox, e) != &native)
        status = npm_inside_bundle(&network.npm, e);
    if (status == 0)
        status = run_or_explain(o, &network, argc, argv, e);
    network_done(&network);
    return status;
}

static int run_main(int argc, char **argv)
{
    struct run_options o = {.sandbox = sandbox_options_defaults()};
    struct err         e = {0};
    int                status;

    status = run_verb(&o, argc, argv, &e);
    if (status < 0) {
        fprintf(stderr, "jerboa: %s\n", e.msg);
        status = EXIT_JERBOA;
    }
    options_done(options, &o);
    return status;
}

const struct verb verb_run = {
    .name = "run",
    .summary = "Runs a script in a fresh sandbox",
    .usage = "run [OPTION…] FILE|- [ARGS…]   or   jerboa run [OPTION…] -e CODE [ARGS…]",
    .details = details,
    .options = options,
    .main = run_main,
};
