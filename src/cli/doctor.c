/* jerboa doctor - what works on this machine for this user, and the one command that mends the
 * rest.
 *
 * Theory of operation. Nothing is guessed from versions: sandboxes are made by the real engine, and
 * a row is `on` when what was tried in one of them held. The first sandbox tells which walls stand
 * (the jail's own list, each checked against what a program inside sees); if it does not start, why
 * is what the jail said, and the rest is `untried`. Then a sandbox for each limit, which a program
 * tries to pass, and one for each need that can only be seen inside.
 *
 * The exit status says whether the native engine works: whether all rows that are required are on.
 * Walls that bound and limits may be off; they are told. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "cli/chart.h"
#include "cli/engine_choice.h"
#include "cli/inside.h"
#include "cli/pause.h"
#include "cli/probe.h"
#include "cli/verb.h"
#include "engine/docker.h"
#include "engine/endpoint.h"
#include "engine/layout.h"
#include "engine/native.h"
#include "engine/podman.h"
#include "engine/run_id.h"
#include "sandbox/sandbox.h"
#include "store/capture.h"
#include "store/container.h"
#include "store/runtime.h"
#include "store/store.h"

enum { FACTS_MAX = 4096, CAPTURE_MS = 10000 };

struct doctor_options {
    bool json;
};

static const struct option options[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct doctor_options, json), NULL,
     "one JSON object instead of a table"},
    {0},
};

static const char details[] =
    "Starts sandboxes and looks at them from inside. Kinds of rows: need; wall, which keeps code\n"
    "in and without which nothing starts; bound, a wall that may be missing; limit; more, what\n"
    "else there is: container engines, which run a container if they have the usual image, and\n"
    "what --engine auto takes. An engine that works with walls missing says so at each run;\n"
    "--strict refuses then.\n\n"
    "Exit status: 0 when the native engine works, 1 when it does not, 2 for bad usage. It works "
    "when\n"
    "sandboxes start and keep code in; store and runtime, which a run would still have to fetch,\n"
    "are needs of their own and do not count.\n";

struct examination {
    struct chart chart;
    char        *self; /* this program, for commands */
    char         runtime_dir[PATH_MAX];
};

/* ---- needs that are seen from here ---- */

static void look_for_program(struct examination *r, const char *name, bool required)
{
    struct err        e = {0};
    autofree char    *path = program_find(name, &e);
    struct chart_row *row = chart_add(&r->chart, "need", name, path ? path : "a program of Jerboa");

    row->required = required;
    row->state = path ? CHART_ON : CHART_OFF;
    if (!path)
        chart_set_off(row, e.msg); /* it says where to get one: no command here can */
}

/* Somebody else's; what is not there is nobody's. */
static bool is_others(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && st.st_uid != getuid();
}

static bool is_in_home(const char *path)
{
    const char *home = getenv("HOME");
    size_t      length = home ? strlen(home) : 0;

    return length > 1 && strncmp(path, home, length) == 0 &&
           (path[length] == '\0' || path[length] == '/');
}

/* Nobody else's: a name that can be foretold could be taken. */
static void set_elsewhere_fix(struct chart_row *row)
{
    chart_put(&row->fix, "export JERBOA_HOME=\"$(mktemp -d /var/tmp/jerboa-XXXXXX)\"");
}

/* Who may not write the store: what is his own he opens again, the rest root makes over to him.
 * `path` is its part that was wanted; the whole store is meant, or where none is yet, the nearest
 * directory above that there is. Above his home (a service's is often missing) that would be /home
 * or /var/lib, which nobody is to make over: then the store goes elsewhere. */
static void set_access_fix(struct chart_row *row, char *path)
{
    bool        others = is_others(path);
    char       *slash = strrchr(path, '/');
    const char *deep = " -R";

    *slash = '\0';
    while (access(path, F_OK) < 0 && (slash = strrchr(path, '/')) && slash != path) {
        *slash = '\0';
        deep = "";
    }
    autofree char *quoted = str_quote(path);
    if (access(path, F_OK) < 0 || (!*deep && is_others(path) && !is_in_home(path)))
        set_elsewhere_fix(row);
    else if (others || is_others(path))
        chart_put(&row->fix, "%schown%s %u %s", chart_sudo(), deep, (unsigned)getuid(), quoted);
    else
        chart_put(&row->fix, "chmod%s u+rwX %s", deep, quoted);
}

static void look_at_store(struct examination *r)
{
    char              path[STORE_PATH_MAX] = "";
    struct err        e = {0};
    autofd int        fd = store_path("runtimes", path, &e) < 0 ? -1 : store_ensure("runtimes", &e);
    struct chart_row *row = chart_add(&r->chart, "need", "store", path);

    if (fd >= 0 && faccessat(fd, ".", W_OK, AT_EACCESS) < 0) {
        err_sys(&e, "%.150s", path);
        fd_close(&fd);
    }
    row->state = fd < 0 ? CHART_OFF : CHART_ON;
    if (fd >= 0)
        return;
    chart_set_off(row, e.msg);
    if (e.sys == EACCES || e.sys == EPERM)
        set_access_fix(row, path);
    else
        set_elsewhere_fix(row);
}

static void look_for_bundle(struct examination *r)
{
    const char       *bundle = native_bundle();
    struct chart_row *row =
        chart_add(&r->chart, "need", "certificates", bundle ? bundle : "for the npm registry");

    row->state = CHART_ON;
    if (bundle)
        return;
    chart_set_off(row, "there is no bundle of certificates");
    chart_put(&row->fix, "%sapt-get install ca-certificates", chart_sudo());
}

/* ---- needs that are seen inside ---- */

static struct engine_spec default_spec(const struct examination *r)
{
    return (struct engine_spec){.engine = &native,
                                .memory_bytes = ENGINE_MEMORY_BYTES,
                                .disk_bytes = ENGINE_MEMORY_BYTES / 2,
                                .cpus_milli = ENGINE_CPUS_MILLI,
                                .pids = ENGINE_PIDS,
                                .fds = ENGINE_FDS,
                                .runtime_dir = r->runtime_dir};
}

/* A command must end with 0; what it prints is its row's text. */
static void try_command(const struct engine_spec *spec, const char *const *argv,
                        struct chart_row *row)
{
    struct probe p;
    struct err   e = {0};

    if (probe_run(spec, argv, &p, &e) < 0 && spec->engine == &native) {
        chart_set_off(row, e.msg);
    } else if (e.kind) {
        chart_set_off_with(row, e.msg, ""); /* others' words, of which none is a command */
    } else if (p.result.verdict != VERDICT_OK) {
        row->state = CHART_OFF;
        chart_put(&row->why, "%s ended with %s", argv[0], verdict_name(p.result.verdict));
    } else {
        row->state = CHART_ON;
    }
    probe_done(&p);
}

/* Called before any sandbox is made, which is then shown this machine's /usr in its place. */
static struct chart_row *look_for_runtime(struct examination *r)
{
    struct runtime    runtime;
    struct err        e = {0};
    struct chart_row *row = chart_add(&r->chart, "need", "runtime", "");

    str_copy(r->runtime_dir, sizeof r->runtime_dir, "/usr");
    if (runtime_find(RUNTIME_DEFAULT, &runtime, &e) < 0) {
        chart_set_off(row, e.msg);
        chart_put(&row->fix, "%s pull", r->self);
        return row;
    }
    str_copy(r->runtime_dir, sizeof r->runtime_dir, runtime.dir);
    chart_put(&row->what, "%s", runtime.dir);
    return row;
}

static void try_runtime(struct examination *r)
{
    const char *const  argv[] = {layout_node, "-e", "0", NULL};
    struct chart_row  *row = chart_find(&r->chart, "runtime");
    struct engine_spec spec = default_spec(r);

    if (!row || row->state == CHART_OFF)
        return;
    try_command(&spec, argv, row);
    if (row->state == CHART_OFF)
        chart_put(&row->fix, "%s pull --verify", r->self); /* nothing that is sound is removed */
}

static void try_files(struct examination *r)
{
    static const char *const argv[] = {"/bin/sh", "-c", "cd /workspace/files", NULL};
    autofree char           *here = getcwd(NULL, 0);
    struct engine_spec       spec = default_spec(r);
    struct chart_row        *row =
        chart_add(&r->chart, "need", "files", here ? here : "the working directory is gone");

    spec.files_dir = here;
    if (!here)
        chart_set_off(row, row->what);
    else
        try_command(&spec, argv, row);
    if (row->state == CHART_OFF && !row->fix)
        chart_put(&row->fix, "cd \"$(mktemp -d)\"");
}

/* With npm's own packages, which lie in every runtime. */
static void try_overlay(struct examination *r)
{
    autofree char     *layer = str_format("%s/lib", r->runtime_dir);
    struct engine_spec spec = default_spec(r);
    struct err         e = {0};
    struct chart_row  *runtime = chart_find(&r->chart, "runtime");
    struct chart_row  *row =
        chart_add(&r->chart, "need", "overlay", "npm packages can be shown to a sandbox that runs");

    if (!runtime || runtime->state != CHART_ON)
        return;
    row->state = CHART_ON;
    if (probe_attach(&spec, layer, &e) < 0)
        chart_set_off(row, e.msg);
}

/* ---- walls ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* `told` is the jail's word; where it says on, what is seen inside must agree. */
static void add_wall(struct examination *r, const json_t *told, const char *facts, const char *own)
{
    bool              keeps = json_is_true(json_object_get(told, "keeps"));
    struct chart_row *row = chart_add(&r->chart, keeps ? "wall" : "bound", text_of(told, "name"),
                                      text_of(told, "what"));
    struct err        e = {0};

    row->required = keeps;
    if (!facts)
        return;
    row->state = CHART_ON;
    if (!json_is_true(json_object_get(told, "on")))
        chart_set_off_with(row, text_of(told, "why"), text_of(told, "fix"));
    else if (inside_shows(row->name, facts, own, &e) < 0)
        chart_set_off(row, e.msg);
}

/* What there is to try, when no sandbox came to tell; NULL: the jail does not run at all. */
static json_t *name_walls(void)
{
    autofree char    *jail = program_find("jerboa-jail", NULL);
    const char *const argv[] = {"jerboa-jail", "walls", NULL};
    struct capture    list;

    if (!jail || capture_run(jail, argv, CAPTURE_MS, &list, NULL) < 0)
        return NULL;
    return json_parse(list.output, strlen(list.output), NULL);
}

static void add_walls(struct examination *r, const json_t *walls, const char *facts,
                      const char *own)
{
    const json_t *wall;
    size_t        i;

    json_array_foreach (walls, i, wall) {
        add_wall(r, wall, facts, own);
    }
}

/* The first sandbox: whether there is any, and its walls. */
static bool try_walls(struct examination *r)
{
    const char *const  argv[] = {"/bin/sh", "-c", inside_script, NULL};
    struct engine_spec spec = default_spec(r);
    struct chart_row  *row =
        chart_add(&r->chart, "need", "sandbox", "one starts, and a program in it");
    autojson json_t   *names = NULL;
    struct probe       p;
    struct err         e = {0};
    autobuf struct buf own;

    row->required = true;
    row->state = CHART_ON;
    buf_init(&own, FACTS_MAX);
    int started = probe_run(&spec, argv, &p, &e);
    if (started == 0 && p.result.verdict != VERDICT_OK)
        started = err_set(&e, ERR_UNAVAILABLE, "the probe inside ended with %s",
                          verdict_name(p.result.verdict));
    if (started < 0 || inside_own_facts(&own, &e) < 0) {
        chart_set_off(row, e.msg);
        names = name_walls();
        add_walls(r, names, NULL, NULL);
    } else {
        add_walls(r, p.walls, buf_text(&p.text), buf_text(&own));
    }
    probe_done(&p);
    return row->state == CHART_ON;
}

/* ---- limits ---- */

static bool was_killed(const struct run_result *r)
{
    return r->verdict == VERDICT_OOM;
}

static bool was_refused(const struct run_result *r)
{
    return r->verdict == VERDICT_PIDS || r->verdict == VERDICT_ERROR;
}

static bool was_full(const struct run_result *r)
{
    return r->verdict == VERDICT_DISK;
}

/* It had a tenth of a processor and wanted one: half of that is far from both. */
static bool was_slowed(const struct run_result *r)
{
    return r->wall_ms > 0 && r->cpu_us / 1000 < (uint64_t)r->wall_ms / 2;
}

static const struct trial {
    const char *name, *what, *script, *why;
    int64_t     memory_bytes, disk_bytes, cpus_milli, pids; /* 0: as usual */
    bool        needs_cgroup;                               /* nothing else bounds it */
    bool (*held)(const struct run_result *r);
} trials[] = {
    {"memory", "a program that took 64 of 32 MiB was killed",
     "exec dd if=/dev/zero of=/dev/null bs=64M count=200", "a program could take 64 of 32 MiB",
     .memory_bytes = 32 << 20, .disk_bytes = 1 << 20, .held = was_killed},
    {"processes", "the 16th process was refused",
     "i=0; while [ $i -lt 40 ]; do sleep 9 & i=$((i + 1)); done", "40 of 16 processes were started",
     .pids = 16, .held = was_refused},
    {"cpu", "a program that spun had a tenth of a processor",
     "timeout 0.4 sh -c 'while :; do :; done'; exit 0",
     "a program had more than a tenth of a processor", .cpus_milli = 100, .needs_cgroup = true,
     .held = was_slowed},
    {"disk", "a second MiB was refused", "head -c 2000000 /dev/zero >/tmp/x",
     "a program could write 2 MB of 1 MiB", .disk_bytes = 1 << 20, .held = was_full},
};

static void try_limit(struct examination *r, const struct trial *t)
{
    const char *const  argv[] = {"/bin/sh", "-c", t->script, NULL};
    struct engine_spec spec = default_spec(r);
    struct chart_row  *row = chart_add(&r->chart, "limit", t->name, t->what),
                     *wall = chart_find(&r->chart, "cgroup");
    struct probe p;
    struct err   e = {0};

    if (t->memory_bytes)
        spec.memory_bytes = t->memory_bytes;
    if (t->disk_bytes)
        spec.disk_bytes = t->disk_bytes;
    if (t->cpus_milli)
        spec.cpus_milli = t->cpus_milli;
    if (t->pids)
        spec.pids = t->pids;
    row->state = CHART_ON;
    if (probe_run(&spec, argv, &p, &e) < 0)
        chart_set_off(row, e.msg);
    else if (!t->held(&p.result) || (t->needs_cgroup && p.result.facts.watched))
        chart_set_off(row, t->why);
    else if (p.result.facts.watched && t->held == was_killed)
        chart_put(&row->what, "%s; sampled, for want of a cgroup", t->what);
    if (row->state == CHART_OFF && !row->fix && wall && wall->fix)
        chart_put(&row->fix, "%s", wall->fix);
    probe_done(&p);
}

/* ---- other engines ---- */

/* Should we be killed meanwhile, the next sweep finds its container, if a store can be made. */
static void try_container(const struct engine_spec *spec, struct chart_row *row)
{
    const char *const    argv[] = {layout_node, "-e", "0", NULL};
    struct endpoint_name daemon = endpoint_name(spec->engine->name);
    autofd int           locked = container_lock(daemon.text, run_id(), NULL);

    try_command(spec, argv, row);
    if (locked >= 0 && !sandbox_may_have_left())
        container_unlock(daemon.text, run_id());
}

/* That a client answers shows little: podman does where no container of its can start. So one is
 * started, by the engine itself, of the image that is run when none is named; others are nobody's
 * to run unasked. */
static void try_containers(struct examination *r, const struct engine *engine, const char *version,
                           struct chart_row *row)
{
    struct engine_spec spec = default_spec(r);
    struct runtime     runtime;
    struct err         e = {0};

    if (container_find(engine->name, RUNTIME_DEFAULT, &runtime, &e) == 0) {
        spec.engine = engine;
        spec.runtime_dir = runtime.dir;
        chart_put(&row->what, "version %s; walls that it lacks: docs/engines.md", version);
        try_container(&spec, row);
    } else if (e.kind == ERR_UNAVAILABLE) {
        chart_set_off_with(row, e.msg, "");
    } else {
        chart_put(&row->what, "version %s answers, and was given nothing to run: %s", version,
                  e.msg);
    }
}

/* Who has no such program does not miss it. */
static void look_for_containers(struct examination *r, const struct engine *engine)
{
    char              version[64];
    struct err        e = {0};
    bool              adopts = engine == &podman && geteuid() != 0 && pause_adopt();
    struct chart_row *row;

    if (container_version(engine->name, version, &e) == 0 || e.kind != ERR_NOT_FOUND) {
        row = chart_add(&r->chart, "more", engine->name, "any image with Node.js");
        if (e.kind)
            chart_set_off_with(row, e.msg, "");
        else
            try_containers(r, engine, version, row);
    }
    if (adopts)
        pause_end();
}

/* As the rows of the engines have it: one that is off is chosen all the same, for what it says when
 * it is asked is why. */
static void tell_choice(struct examination *r)
{
    struct chart_row       *row = chart_add(&r->chart, "more", "auto", "");
    const struct chart_row *others;
    struct engine_choice    choice;
    bool                    is_off;

    row->state = CHART_ON;
    if (engine_choice_make("auto", &choice, NULL) < 0)
        abort();
    others = choice.of_others ? chart_find(&r->chart, choice.of_others->name) : NULL;
    is_off = others && others->state == CHART_OFF;
    if (*choice.why)
        chart_put(&row->what, "takes %s for all images: native cannot work here",
                  choice.of_node->name);
    else if (is_off)
        chart_put(&row->what, "takes native for node images; others would be %s's, which is off",
                  choice.of_others->name);
    else if (choice.of_others)
        chart_put(&row->what, "takes native for node images, %s for others",
                  choice.of_others->name);
    else
        chart_put(&row->what, "takes native: there is neither docker nor podman");
    if (*choice.why && is_off) {
        row->state = CHART_OFF;
        chart_put(&row->why, "native cannot work here, and %s is off", choice.of_others->name);
    }
}

/* ---- the whole ---- */

static void examine(struct examination *r)
{
    look_for_program(r, "jerboa-jail", true);
    look_for_program(r, "jerboa-init", true);
    look_for_program(r, "jerboa-fetch", false);
    look_for_bundle(r);
    look_at_store(r);
    look_for_runtime(r);
    look_for_containers(r, &docker);
    look_for_containers(r, &podman);
    tell_choice(r);
    if (!try_walls(r))
        return;
    try_runtime(r);
    try_files(r);
    try_overlay(r);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
        try_limit(r, &trials[i]);
}

/* The caller frees it. */
static char *find_self(void)
{
    char    path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    path[n < 0 ? 0 : n] = '\0';
    return str_quote(n < 0 ? "jerboa" : path);
}

static int doctor_main(int argc, char **argv)
{
    struct doctor_options o = {0};
    struct err            e = {0};
    struct examination   *r;
    int                   used, status;

    if (options_from_env(options, &o, &e) == 0 &&
        options_from_args(options, &o, argc, argv, &used, &e) == 0 && used < argc)
        err_set(&e, ERR_INVALID, "doctor takes no '%.60s'", argv[used]);
    if (e.kind) {
        fprintf(stderr, "jerboa: %s\n", e.msg);
        return EXIT_USAGE;
    }
    r = calloc(1, sizeof *r);
    if (!r)
        abort();
    r->self = find_self();
    examine(r);
    if (o.json)
        chart_print_json(&r->chart);
    else
        chart_print(&r->chart);
    status = chart_works(&r->chart) ? 0 : EXIT_FAILED;
    chart_done(&r->chart);
    free(r->self);
    free(r);
    return status;
}

const struct verb verb_doctor = {
    .name = "doctor",
    .summary = "Tells what works on this machine, and how to mend the rest",
    .usage = "doctor [--json]",
    .details = details,
    .options = options,
    .main = doctor_main,
};
