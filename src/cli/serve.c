/* jerboa serve - the MCP server: its tools on stdio, on HTTP, or on both. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/missing_walls.h"
#include "cli/sandbox_options.h"
#include "cli/verb.h"
#include "config.h"
#include "engine/endpoint.h"
#include "engine/native.h"
#include "engine/run_id.h"
#include "sandbox/sandbox.h"
#include "store/container.h"
#include "store/store.h"
#include "tools/admission.h"
#include "tools/following.h"
#include "tools/tools.h"
#include "trail/trail.h"
#include "transport/serve.h"

enum {
    STOP_MS = 8000, /* a sandbox's own end has 5 s, and then what it left is swept */
    WAIT_MS_MAX = 600000,
};

struct options {
    struct sandbox_options sandbox;
    struct serve_options   serve;
    struct option_list     hosts;
    int64_t                sandboxes, sandboxes_each, wait_ms, age_ms, idle_ms, files_quota_bytes;
    int64_t                pool, pool_memory_bytes, hold_ms, reserve_bytes;
    const char            *pull;
    bool                   verbose;
};

#define AT(member) offsetof(struct options, member)
static const struct option options[] = {
    {"http", 0, OPTION_STRING, AT(serve.http.address), "[HOST:]PORT",
     "serve http://HOST:PORT/mcp (127.0.0.1; port 0: any free one), or unix:PATH"},
    {"stdio", 0, OPTION_FLAG, AT(serve.stdio), NULL,
     "serve standard input and output; the default without --http"},
    {"tokens", 0, OPTION_STRING, AT(serve.http.tokens_file), "FILE",
     "who may ask over HTTP: lines of NAME TOKEN, mode 0600; each name has its own sandboxes and "
     "its own folder of --files"},
    {"insecure", 0, OPTION_FLAG, AT(serve.http.insecure), NULL,
     "serve other machines even without tokens"},
    {"host", 0, OPTION_LIST, AT(hosts), "NAME",
     "a further name that this server is asked by (Host, Origin); may be repeated"},
    {"sandboxes", 0, OPTION_COUNT, AT(sandboxes), "N",
     "at most so many at once, those made ahead not counted (64)"},
    {"sandboxes-each", 0, OPTION_COUNT, AT(sandboxes_each), "N",
     "… and of these so many of one owner (with --tokens half of them, else all)"},
    {"wait", 0, OPTION_DURATION, AT(wait_ms), "TIME",
     "let a call wait so long for a sandbox while all are in use; then it is told to try again "
     "(20s; 0: at once; at most 10m)"},
    {"age", 0, OPTION_DURATION, AT(age_ms), "TIME",
     "stop a sandbox after this long (3600s; 0: never)", .second_env = "NODE_CONTAINER_TIMEOUT"},
    {"idle", 0, OPTION_DURATION, AT(idle_ms), "TIME",
     "stop a sandbox that nobody used for this long (0: never)"},
    {"pool", 0, OPTION_COUNT_0, AT(pool), "N",
     "keep so many sandboxes ready for who asks next, more under load (2; 0: none)"},
    {"pool-memory", 0, OPTION_SIZE, AT(pool_memory_bytes), "SIZE",
     "… but not more than fit into this, 16m each, of docker 24m, of podman 28m (256m)"},
    {"reserve", 0, OPTION_SIZE, AT(reserve_bytes), "SIZE",
     "keep so much memory free, of this machine and of the cgroup: below it new sandboxes wait, "
     "below twice as much none are made ahead (a sixteenth, at most 256m; 0: do not look)"},
    {"hold", 0, OPTION_DURATION, AT(hold_ms), "TIME",
     "keep a Node booted in a sandbox that was used within this time (5m; 0: never)"},
    {"files-quota", 0, OPTION_SIZE, AT(files_quota_bytes), "SIZE",
     "how much one run may add to --files (1g; 0: no limit)"},
    SANDBOX_OPTIONS_ROWS(AT(sandbox)),
    {"pull", 0, OPTION_STRING, AT(pull), "WHICH",
     "images that a container engine may pull for agents: node (those of node, and --image) or any "
     "(any with --engine docker or podman, else node)"},
    {"verbose", 0, OPTION_FLAG, AT(verbose), NULL, "more lines in the log on stderr"},
    {0},
};
#undef AT

/* ---- what tools stand on ---- */

struct service {
    struct event_base   *base;
    struct network       network;
    struct resolver     *resolver;
    const char          *env[2][16]; /* of node images, and of others */
    char                *files_dir;
    char                 scratch_dir[STORE_PATH_MAX];
    struct tools         tools;
    int64_t              began_ms;
    struct engine_choice choice;
    struct endpoint_name daemon;  /* that makes containers, if one does */
    int                  run_fd;  /* its lock, or -1 */
    bool                 stopped; /* all sandboxes are gone */
};

static void on_boxes_changed(void *owner, const char *box_owner)
{
    struct service *s = owner;
    const char     *name = str_starts(box_owner, "token:") ? box_owner + strlen("token:") : "";

    if (s->tools.mcp)
        mcp_server_resources_changed(s->tools.mcp, name);
}

static void on_walls(void *owner, const json_t *list)
{
    (void)owner;
    missing_walls_log(list);
}

static void on_note(void *owner, const char *sentence)
{
    (void)owner;
    log_line(LOG_WARN, "sandbox", "%s", sentence);
}

static void on_room(void *owner)
{
    struct service *s = owner;

    if (s->tools.admission) /* else the server stops */
        admission_look(s->tools.admission);
}

static const struct boxes_ops boxes_ops = {on_boxes_changed, on_walls, on_note, on_room};

static void on_file_updated(void *owner, const char *principal, const char *uri)
{
    struct service *s = owner;

    if (s->tools.mcp) /* else nobody listens any more */
        mcp_server_resource_updated(s->tools.mcp, principal, uri);
}

static void on_files_listed(void *owner, const char *principal)
{
    struct service *s = owner;

    if (s->tools.mcp)
        mcp_server_resources_changed(s->tools.mcp, principal);
}

static void on_files_note(void *owner, const char *sentence)
{
    (void)owner;
    log_line(LOG_WARN, "files", "%s", sentence);
}

static const struct shares_ops shares_ops = {on_file_updated, on_files_listed, on_files_note};

static void on_layers_note(const char *sentence)
{
    log_line(LOG_WARN, "dependencies", "%s", sentence);
}

static void on_session_end(void *context, const char *owner)
{
    struct tools *t = context;

    boxes_stop_owner(t->boxes, owner);
    outputs_drop_owner(t->outputs, owner);
}

static void on_subscribe(void *context)
{
    struct tools *t = context;

    following_look(t->following);
}

/* ---- the audit log ---- */

static void on_trail_note(const char *sentence)
{
    log_line(LOG_ERROR, "audit", "%s", sentence);
}

static json_t *describe_server(const struct service *s, const struct options *o)
{
    const struct sandbox_options *of_each = &o->sandbox;
    const char *network = s->network.is_host ? "host" : policy_name(s->network.policy);
    const char *http = o->serve.http.address;

    return json_pack(
        "{s:s, s:i, s:I, s:o, s:o, s:b, s:I, s:I, s:I, s:I, s:I}", "version", JERBOA_VERSION, "pid",
        (int)getpid(), "uid", (json_int_t)getuid(), "network", json_text(network, strlen(network)),
        "http", http ? json_text(http, strlen(http)) : json_null(), "tokens",
        o->serve.http.tokens_file != NULL, "sandboxes", (json_int_t)o->sandboxes, "memoryBytes",
        (json_int_t)of_each->memory_bytes, "cpusMilli", (json_int_t)of_each->cpus_milli, "pids",
        (json_int_t)of_each->pids, "diskBytes", (json_int_t)of_each->disk_bytes);
}

/* Its first line must be written: who wants a log has one. */
static int open_trail(struct service *s, const struct options *o, struct err *e)
{
    struct trail_spec spec = {.path = o->sandbox.audit,
                              .outside_dir = s->files_dir,
                              .strict = o->sandbox.audit_strict,
                              .note = on_trail_note};

    s->began_ms = clock_ms();
    if (!o->sandbox.audit)
        return 0;
    s->tools.trail = trail_open(&spec, e);
    return s->tools.trail
               ? trail_write(s->tools.trail, TRAIL_SERVER_STARTED, describe_server(s, o), e)
               : -1;
}

static void close_trail(struct service *s)
{
    if (s->stopped)
        trail_write(s->tools.trail, TRAIL_SERVER_STOPPED,
                    json_pack("{s:I}", "ms", (json_int_t)(clock_ms() - s->began_ms)), NULL);
    trail_close(s->tools.trail);
}

/* ---- making it ---- */

static void compose_env(struct service *s, const struct engine *engine,
                        const struct engine_spec *spec, const char *ret[16])
{
    size_t n = 0, max = sizeof s->env[0] / sizeof s->env[0][0] - 1;

    for (const char *const *v = engine->environment(spec); *v && n < max; v++)
        ret[n++] = *v;
    for (const char *const *v = s->network.npm.environment; *v && n < max; v++)
        ret[n++] = *v;
}

static int make_policies(struct service *s, struct err *e)
{
    for (size_t i = 0; tools_policy_names[i]; i++) {
        s->tools.policies[i] = network_policy(tools_policy_names[i], e);
        if (!s->tools.policies[i])
            return -1;
    }
    return 0;
}

static int make_layers(struct service *s, const struct options *o, struct err *e)
{
    struct layers_spec spec = {.base = s->base,
                               .installer = o->sandbox.installer,
                               .fresh_ms = o->sandbox.fresh_ms,
                               .strict = o->sandbox.strict,
                               .remote = o->sandbox.remote,
                               .note = on_layers_note};

    s->tools.layers = layers_new(&spec, e);
    return s->tools.layers ? 0 : -1;
}

static void make_boxes(struct service *s, const struct options *o)
{
    struct boxes_spec spec = {
        .base = s->base,
        .limits = sandbox_options_spec(&o->sandbox, &s->network),
        .network = {.operator_policy = s->network.policy, .limits = o->sandbox.limits},
        .host_network = s->network.is_host,
        .max = o->sandboxes,
        .max_each = o->sandboxes_each,
        .age_ms = o->age_ms,
        .idle_ms = o->idle_ms,
        .pool_min = o->pool,
        .pool_bytes = o->pool_memory_bytes,
        .hold_ms = o->hold_ms,
        .reserve_bytes = o->reserve_bytes,
        .image = o->sandbox.image,
        .files_dir = s->files_dir,
        .files_dirs_differ = s->files_dir && o->serve.http.tokens_file,
        .env = s->env[0],
        .env_of_others = s->env[1],
        .of_node = s->choice.of_node,
        .of_others = s->choice.of_others,
        .native_works = s->choice.native_works,
        .pulls_any = strcmp(o->pull, "any") == 0,
        .why_not_native = s->choice.why,
        .scratch_dir = s->scratch_dir,
        .trail = s->tools.trail};

    compose_env(s, spec.of_node, &spec.limits, s->env[0]);
    if (spec.of_others)
        compose_env(s, spec.of_others, &spec.limits, s->env[1]);
    s->resolver = spec.network.resolver = resolver_new(s->base, NULL);
    s->tools.boxes = boxes_new(&spec, &boxes_ops, s);
    s->tools.admission = admission_new(s->base, s->tools.boxes, o->wait_ms);
}

static int begin_containers(struct service *s, struct err *e)
{
    TRY(npm_inside_bundle(&s->network.npm, e));
    s->daemon = endpoint_name(s->choice.of_others->name);
    s->run_fd = container_lock(s->daemon.text, run_id(), e); /* else ours count as left */
    return s->run_fd < 0 ? -1 : 0;
}

/* Who may have containers but did not ask for them is served without. */
static int choose_engines(struct service *s, const struct options *o, struct err *e)
{
    s->choice = o->sandbox.choice;
    if (!s->choice.of_others || begin_containers(s, e) == 0)
        return 0;
    if (s->choice.of_node != &native)
        return -1;
    log_line(LOG_WARN, "engine", "%s makes no sandboxes: %s", s->choice.of_others->name, e->msg);
    s->choice.of_others = NULL;
    *e = (struct err){0};
    return 0;
}

/* For agents. */
static const char *other_images(const struct service *s, const struct options *o)
{
    if (!s->choice.of_others)
        return "";
    return strcmp(o->pull, "any") == 0 ? " Or any image with Node." : " Or one the server has.";
}

static int service_init(struct service *s, const struct options *o, struct err *e)
{
    s->base = event_base_new();
    if (!s->base)
        return err_set(e, ERR_INTERNAL, "no event loop");
    if (o->sandbox.files)
        TRY(sandbox_options_dir("files", o->sandbox.files, &s->files_dir, e));
    TRY(network_init(&s->network, o->sandbox.network, &o->sandbox.allow, e));
    TRY(open_trail(s, o, e));
    TRY(choose_engines(s, o, e));
    TRY(store_path("", s->scratch_dir, e));
    TRY(make_policies(s, e));
    TRY(make_layers(s, o, e));
    make_boxes(s, o);
    s->tools.outputs = outputs_new();
    s->tools.fetches = fetches_new(s->base);
    s->tools.shares = shares_new(s->base, s->files_dir, &shares_ops, s);
    s->tools.files_quota_bytes = o->files_quota_bytes;
    s->tools.words = (struct words){.memory_bytes = o->sandbox.memory_bytes,
                                    .disk_bytes = o->sandbox.disk_bytes,
                                    .cpus_milli = o->sandbox.cpus_milli,
                                    .pids = o->sandbox.pids,
                                    .timeout_ms = o->sandbox.timeout_ms,
                                    .age_ms = o->age_ms,
                                    .idle_ms = o->idle_ms,
                                    .image = o->sandbox.image,
                                    .images = other_images(s, o),
                                    .sandboxes = o->sandboxes_each,
                                    .network = policy_name(s->network.policy)};
    return 0;
}

static void on_stopped(void *owner)
{
    struct service *s = owner;

    s->stopped = true;
    event_base_loopbreak(s->base);
}

/* The walls of a sandbox come down outside of us, but who starts us should find nothing left when
 * we are gone. */
static void stop_boxes(struct service *s)
{
    struct timeval limit = {STOP_MS / 1000, 0};

    boxes_stop(s->tools.boxes, on_stopped, s);
    event_base_loopexit(s->base, &limit);
    event_base_dispatch(s->base);
    if (!s->stopped)
        log_line(LOG_ERROR, "sandbox", "some did not end within %d s; the next start cleans up",
                 STOP_MS / 1000);
}

static void service_done(struct service *s)
{
    tools_done(&s->tools);
    if (s->tools.boxes && s->stopped)
        boxes_free(s->tools.boxes);
    if (s->tools.layers)
        layers_free(s->tools.layers);
    if (s->tools.shares)
        shares_free(s->tools.shares);
    fetches_free(s->tools.fetches);
    if (s->tools.outputs)
        outputs_free(s->tools.outputs);
    for (size_t i = 0; i < TOOLS_POLICIES; i++)
        policy_free(s->tools.policies[i]);
    close_trail(s);
    if (s->stopped && s->run_fd >= 0 && !sandbox_may_have_left())
        container_unlock(s->daemon.text, run_id());
    fd_close(&s->run_fd);
    network_done(&s->network);
    resolver_free(s->resolver);
    free(s->files_dir);
    if (s->base)
        event_base_free(s->base);
}

/* ---- serving ---- */

static const struct mcp_about about = {
    .name = "jerboa",
    .title = "Jerboa: JavaScript in sandboxes",
    .version = JERBOA_VERSION,
    .instructions = tools_instructions,
    .list_ttl_ms = 3600LL * 1000,
};

/* Where there is a choice. */
static void tell_engines(const struct engine_choice *c)
{
    if (!c->is_auto || !c->of_others)
        return;
    if (c->passed_by)
        log_line(LOG_WARN, "engine", "%s was passed by, for nobody listens to you at its socket",
                 c->passed_by->name);
    if (*c->why)
        log_line(LOG_WARN, "engine", "native cannot work here, so %s makes all sandboxes: %s",
                 c->of_others->name, c->why);
    else
        log_line(LOG_INFO, "engine", "native makes sandboxes of node images, %s those of others",
                 c->of_others->name);
}

static int serve(struct service *s, const struct options *o, struct err *e)
{
    int r;

    s->tools.mcp = mcp_server_new(s->base, &about, &s->tools);
    tools_register(&s->tools);
    mcp_server_on_session_end(s->tools.mcp, on_session_end);
    s->tools.following = following_new(&s->tools, s->base);
    mcp_server_on_subscribe(s->tools.mcp, on_subscribe);
    tell_engines(&s->choice);
    if (!s->files_dir)
        log_line(LOG_INFO, "files", "FILES_DIR is not set: /workspace/files goes with its sandbox");
    r = serve_run(s->tools.mcp, s->base, &o->serve, e);
    following_free(s->tools.following);
    mcp_server_free(s->tools.mcp);
    s->tools.mcp = NULL;
    admission_free(s->tools.admission);
    s->tools.admission = NULL;
    stop_boxes(s);
    return r;
}

static int read_options(struct options *o, int argc, char **argv, struct err *e)
{
    int used;

    TRY(options_from_env(options, o, e));
    TRY(options_from_args(options, o, argc, argv, &used, e));
    if (used != argc)
        return err_set(e, ERR_INVALID, "serve takes options only, not '%.60s'", argv[used]);
    if (!o->serve.http.address)
        o->serve.stdio = true;
    if (o->serve.http.tokens_file && !o->serve.http.address)
        return err_set(e, ERR_INVALID, "--tokens is of --http: on stdio there is one client");
    if (o->wait_ms > WAIT_MS_MAX)
        return err_set(e, ERR_INVALID, "--wait is at most %d s", WAIT_MS_MAX / 1000);
    if (o->sandboxes_each == 0)
        o->sandboxes_each = o->serve.http.tokens_file ? (o->sandboxes + 1) / 2 : o->sandboxes;
    if (o->sandboxes_each > o->sandboxes)
        o->sandboxes_each = o->sandboxes;
    TRY(sandbox_options_check(&o->sandbox, e));
    if (!o->pull) /* who asks for containers asks for images */
        o->pull = o->sandbox.choice.is_auto ? "node" : "any";
    if (strcmp(o->pull, "node") != 0 && strcmp(o->pull, "any") != 0)
        return err_set(e, ERR_INVALID, "--pull is node or any, not '%.60s'", o->pull);
    return sandbox_options_engine(&o->sandbox, e) ? 0 : -1;
}

static int serve_main(int argc, char **argv)
{
    struct options o = {.sandbox = sandbox_options_defaults(),
                        .sandboxes = 64,
                        .wait_ms = 20LL * 1000, /* and a run's 30 s: within a client's minute */
                        .age_ms = 3600LL * 1000,
                        .files_quota_bytes = 1 << 30,
                        .reserve_bytes = -1,
                        .pool = 2,
                        .pool_memory_bytes = 256 << 20,
                        .hold_ms = 300LL * 1000};
    struct service s = {.run_fd = -1};
    struct err     e = {0};
    const char    *hosts[OPTION_LIST_MAX + 1] = {0};
    int            r = read_options(&o, argc, argv, &e);

    if (r == 0) {
        log_set_level(o.verbose ? LOG_DEBUG : LOG_INFO);
        memcpy(hosts, o.hosts.items, o.hosts.n * sizeof hosts[0]);
        o.serve.http.hosts = hosts;
        r = serve_check_descriptors(&o.serve, &e);
    }
    if (r == 0 && (r = service_init(&s, &o, &e)) == 0)
        r = serve(&s, &o, &e);
    service_done(&s);
    options_done(options, &o);
    if (r < 0)
        fprintf(stderr, "jerboa: %s\n", e.msg);
    return r == 0 ? 0 : e.kind == ERR_INVALID ? EXIT_USAGE : EXIT_FAILED;
}

const struct verb verb_serve = {
    .name = "serve",
    .summary = "Serves the tools to MCP clients, on stdio or HTTP",
    .usage = "serve [OPTION…]",
    .options = options,
    .details =
        "Without --http it serves the client that started it, on standard input and "
        "output. Each option is also read from the environment (--memory: JERBOA_MEMORY; "
        "what may be repeated: one a line). "
        "It stops on SIGINT, SIGTERM, SIGHUP, SIGUSR2 or when its input ends; all sandboxes end "
        "with it.\n",
    .main = serve_main,
};
