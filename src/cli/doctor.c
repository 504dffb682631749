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
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "cli/inside.h"
#include "cli/probe.h"
#include "cli/verb.h"
#include "config.h"
#include "store/capture.h"
#include "store/runtime.h"
#include "store/store.h"

enum { ROWS_MAX = 64, FACTS_MAX = 4096, CAPTURE_MS = 10000 };

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
    "in and without which nothing starts; bound, a wall that may be missing; limit. An engine "
    "that\n"
    "works with walls missing says so at each run; --strict refuses then.\n\n"
    "Exit status: 0 when the native engine works, 1 when it does not, 2 for bad usage. It works "
    "when\n"
    "sandboxes start and keep code in; store and runtime, which a run would still have to fetch,\n"
    "are needs of their own and do not count.\n";

/* ---- rows ---- */

enum state { UNTRIED, ON, OFF };

static const char *const state_names[] = {[UNTRIED] = "untried", [ON] = "on", [OFF] = "off"};

struct row {
    const char *kind; /* need, wall, bound, limit */
    char       *name;
    bool        required; /* for the engine to work */
    enum state  state;
    char       *what; /* it is for, or was seen */
    char       *why;  /* it is not on, or NULL */
    char       *fix;  /* one command, or NULL */
};

struct report {
    struct row rows[ROWS_MAX];
    size_t     n;
    char       self[PATH_MAX]; /* this program, for commands */
    char       runtime_dir[PATH_MAX];
};

static void put(char **to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(char **to, const char *fmt, ...)
{
    char   *text;
    va_list args;

    va_start(args, fmt);
    text = str_vformat(fmt, args);
    va_end(args);
    free(*to);
    *to = text;
}

static struct row *add(struct report *r, const char *kind, const char *name, const char *what)
{
    struct row *row = &r->rows[r->n++];

    assert(r->n <= ROWS_MAX);
    row->kind = kind;
    put(&row->name, "%s", name);
    put(&row->what, "%s", what);
    return row;
}

static void report_done(struct report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->rows[i].name);
        free(r->rows[i].what);
        free(r->rows[i].why);
        free(r->rows[i].fix);
    }
}

static struct row *find(struct report *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->rows[i].name, name) == 0)
            return &r->rows[i];
    return NULL;
}

static const char *sudo(void)
{
    return geteuid() == 0 ? "" : "sudo ";
}

/* The command in a sentence of the jail's, which ends in `as root: COMMAND`; returns where that
 * begins, or NULL. */
static const char *take_command(struct row *row, const char *sentence)
{
    const struct {
        const char *words, *prefix;
    } marks[] = {{"as root: ", sudo()}, {"start it with: ", ""}};

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const char *mark = strstr(sentence, marks[i].words);
        if (!mark)
            continue;
        put(&row->fix, "%s%s", marks[i].prefix, mark + strlen(marks[i].words));
        return mark;
    }
    return NULL;
}

/* Why, and what to do: advice that is no command goes with the reason. */
static void set_off_with(struct row *row, const char *why, const char *fix)
{
    row->state = OFF;
    if (!*fix || take_command(row, fix))
        put(&row->why, "%s", why);
    else
        put(&row->why, "%s; %s", why, fix);
}

/* Both in one sentence, as errors have it. */
static void set_off(struct row *row, const char *sentence)
{
    const char *command = take_command(row, sentence);
    size_t      n = command ? (size_t)(command - sentence) : strlen(sentence);

    row->state = OFF;
    while (n > 0 && strchr(" :;", sentence[n - 1]))
        n--;
    put(&row->why, "%.*s", (int)n, sentence);
}

/* ---- needs that are seen from here ---- */

static void look_for_program(struct report *r, const char *name, bool required)
{
    struct err     e = {0};
    autofree char *path = program_find(name, &e);
    struct row    *row = add(r, "need", name, path ? path : "a program of Jerboa");

    row->required = required;
    row->state = path ? ON : OFF;
    if (path)
        return;
    set_off(row, e.msg);
    put(&row->fix, "make install");
}

/* The nearest directory that is there already belongs to somebody else. */
static void set_owner_fix(struct row *row, char *path)
{
    char *slash = strrchr(path, '/'); /* of the part: the whole store is meant */

    *slash = '\0';
    if (access(path, F_OK) == 0) {
        put(&row->fix, "%schown -R %u %s", sudo(), (unsigned)getuid(), path);
        return;
    }
    while ((slash = strrchr(path, '/')) && slash != path && access(path, F_OK) < 0)
        *slash = '\0';
    put(&row->fix, "%schown %u %s", sudo(), (unsigned)getuid(), path);
}

static void look_at_store(struct report *r)
{
    char        path[STORE_PATH_MAX] = "";
    struct err  e = {0};
    autofd int  fd = store_path("runtimes", path, &e) < 0 ? -1 : store_ensure("runtimes", &e);
    struct row *row = add(r, "need", "store", path);

    if (fd >= 0 && faccessat(fd, ".", W_OK, AT_EACCESS) < 0) {
        err_sys(&e, "%.150s", path);
        fd_close(&fd);
    }
    row->state = fd < 0 ? OFF : ON;
    if (fd >= 0)
        return;
    set_off(row, e.msg);
    if (e.sys == EACCES || e.sys == EPERM)
        set_owner_fix(row, path);
    else /* nobody else's: a name that can be foretold could be taken */
        put(&row->fix, "export JERBOA_HOME=\"$(mktemp -d /var/tmp/jerboa-XXXXXX)\"");
}

static void look_for_bundle(struct report *r)
{
    const char *bundle = native_bundle();
    struct row *row = add(r, "need", "certificates", bundle ? bundle : "for the npm registry");

    row->state = ON;
    if (bundle)
        return;
    set_off(row, "there is no bundle of certificates");
    put(&row->fix, "%sapt-get install ca-certificates", sudo());
}

/* ---- needs that are seen inside ---- */

static struct native_spec default_spec(const struct report *r)
{
    return (struct native_spec){.memory_bytes = NATIVE_MEMORY_BYTES,
                                .disk_bytes = NATIVE_MEMORY_BYTES / 2,
                                .cpus_milli = NATIVE_CPUS_MILLI,
                                .pids = NATIVE_PIDS,
                                .fds = NATIVE_FDS,
                                .runtime_dir = r->runtime_dir};
}

/* A command must end with 0; what it prints is its row's text. */
static void try_command(const struct native_spec *spec, const char *const *argv, struct row *row)
{
    struct probe p;
    struct err   e = {0};

    if (probe_run(spec, argv, &p, &e) < 0) {
        set_off(row, e.msg);
    } else if (p.result.verdict != VERDICT_OK) {
        row->state = OFF;
        put(&row->why, "%s ended with %s", argv[0], verdict_name(p.result.verdict));
    } else {
        row->state = ON;
    }
    probe_done(&p);
}

/* Called before any sandbox is made, which is then shown this machine's /usr in its place. */
static struct row *look_for_runtime(struct report *r)
{
    struct runtime runtime;
    struct err     e = {0};
    struct row    *row = add(r, "need", "runtime", "");

    str_copy(r->runtime_dir, sizeof r->runtime_dir, "/usr");
    if (runtime_find(RUNTIME_DEFAULT, &runtime, &e) < 0) {
        set_off(row, e.msg);
        put(&row->fix, "%s pull", r->self);
        return row;
    }
    str_copy(r->runtime_dir, sizeof r->runtime_dir, runtime.dir);
    put(&row->what, "%s", runtime.dir);
    return row;
}

static void try_runtime(struct report *r)
{
    const char *const  argv[] = {native_node, "-e", "0", NULL};
    struct row        *row = find(r, "runtime");
    struct native_spec spec = default_spec(r);

    if (!row || row->state == OFF)
        return;
    try_command(&spec, argv, row);
    if (row->state == OFF)
        put(&row->fix, "%s pull --verify", r->self); /* nothing that is sound is removed */
}

static void try_files(struct report *r)
{
    static const char *const argv[] = {"/bin/sh", "-c", "cd /workspace/files", NULL};
    autofree char           *here = getcwd(NULL, 0);
    struct native_spec       spec = default_spec(r);
    struct row *row = add(r, "need", "files", here ? here : "the working directory is gone");

    spec.files_dir = here;
    if (!here)
        row->state = OFF;
    else
        try_command(&spec, argv, row);
    if (row->state == OFF && !row->fix)
        put(&row->fix, "cd \"$(mktemp -d)\"");
}

/* With npm's own packages, which lie in every runtime. */
static void try_overlay(struct report *r)
{
    autofree char     *layer = str_format("%s/lib", r->runtime_dir);
    struct native_spec spec = default_spec(r);
    struct err         e = {0};
    struct row *row = add(r, "need", "overlay", "npm packages can be shown to a sandbox that runs");
    const struct row *runtime = find(r, "runtime");

    if (!runtime || runtime->state != ON)
        return;
    row->state = ON;
    if (probe_attach(&spec, layer, &e) < 0)
        set_off(row, e.msg);
}

/* ---- walls ---- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* `told` is the jail's word; where it says on, what is seen inside must agree. */
static void add_wall(struct report *r, const json_t *told, const char *facts, const char *own)
{
    bool        keeps = json_is_true(json_object_get(told, "keeps"));
    struct row *row =
        add(r, keeps ? "wall" : "bound", text_of(told, "name"), text_of(told, "what"));
    struct err e = {0};

    row->required = keeps;
    if (!facts)
        return;
    row->state = ON;
    if (!json_is_true(json_object_get(told, "on")))
        set_off_with(row, text_of(told, "why"), text_of(told, "fix"));
    else if (inside_shows(row->name, facts, own, &e) < 0)
        set_off(row, e.msg);
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

static void add_walls(struct report *r, const json_t *walls, const char *facts, const char *own)
{
    const json_t *wall;
    size_t        i;

    json_array_foreach (walls, i, wall) {
        add_wall(r, wall, facts, own);
    }
}

/* The first sandbox: whether there is any, and its walls. */
static bool try_walls(struct report *r)
{
    const char *const  argv[] = {"/bin/sh", "-c", inside_script, NULL};
    struct native_spec spec = default_spec(r);
    struct row        *row = add(r, "need", "sandbox", "one starts, and a program in it");
    autojson json_t   *names = NULL;
    struct probe       p;
    struct err         e = {0};
    autobuf struct buf own;

    row->required = true;
    row->state = ON;
    buf_init(&own, FACTS_MAX);
    int started = probe_run(&spec, argv, &p, &e);
    if (started == 0 && p.result.verdict != VERDICT_OK)
        started = err_set(&e, ERR_UNAVAILABLE, "the probe inside ended with %s",
                          verdict_name(p.result.verdict));
    if (started < 0 || inside_own_facts(&own, &e) < 0) {
        set_off(row, e.msg);
        names = name_walls();
        add_walls(r, names, NULL, NULL);
    } else {
        add_walls(r, p.walls, buf_text(&p.text), buf_text(&own));
    }
    probe_done(&p);
    return row->state == ON;
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

static void try_limit(struct report *r, const struct trial *t)
{
    const char *const  argv[] = {"/bin/sh", "-c", t->script, NULL};
    struct native_spec spec = default_spec(r);
    struct row        *row = add(r, "limit", t->name, t->what), *wall = find(r, "cgroup");
    struct probe       p;
    struct err         e = {0};

    if (t->memory_bytes)
        spec.memory_bytes = t->memory_bytes;
    if (t->disk_bytes)
        spec.disk_bytes = t->disk_bytes;
    if (t->cpus_milli)
        spec.cpus_milli = t->cpus_milli;
    if (t->pids)
        spec.pids = t->pids;
    row->state = ON;
    if (probe_run(&spec, argv, &p, &e) < 0)
        set_off(row, e.msg);
    else if (!t->held(&p.result) || (t->needs_cgroup && p.result.facts.watched))
        set_off(row, t->why);
    else if (p.result.facts.watched && t->held == was_killed)
        put(&row->what, "%s; sampled, for want of a cgroup", t->what);
    if (row->state == OFF && !row->fix && wall && wall->fix)
        put(&row->fix, "%s", wall->fix);
    probe_done(&p);
}

/* ---- the whole ---- */

static void examine(struct report *r)
{
    ssize_t n = readlink("/proc/self/exe", r->self, sizeof r->self - 1);

    if (n < 0)
        str_copy(r->self, sizeof r->self, "jerboa");
    look_for_program(r, "jerboa-jail", true);
    look_for_program(r, "jerboa-init", true);
    look_for_program(r, "jerboa-fetch", false);
    look_for_bundle(r);
    look_at_store(r);
    look_for_runtime(r);
    if (!try_walls(r))
        return;
    try_runtime(r);
    try_files(r);
    try_overlay(r);
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++)
        try_limit(r, &trials[i]);
}

static bool engine_works(const struct report *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].required && r->rows[i].state != ON)
            return false;
    return true;
}

static char *user_name(void) /* the caller frees; NULL: has none */
{
    const struct passwd *user = getpwuid(getuid());

    return user ? str_format("%s", user->pw_name) : NULL;
}

static json_t *row_json(const struct row *row)
{
    json_t *j = json_pack("{s:s, s:s, s:s, s:b, s:o}", "kind", row->kind, "name", row->name,
                          "state", state_names[row->state], "required", row->required, "what",
                          json_text(row->what, strlen(row->what)));

    if (!j)
        abort();
    if (row->why)
        json_object_set_new(j, "why", json_text(row->why, strlen(row->why)));
    if (row->fix)
        json_object_set_new(j, "fix", json_text(row->fix, strlen(row->fix)));
    return j;
}

/* Rows in the order of kinds; within one, as they were tried. */
static void sort_rows(const struct report *r, const struct row *ret[ROWS_MAX])
{
    static const char *const kinds[] = {"need", "wall", "bound", "limit"};
    size_t                   n = 0;

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < r->n; i++)
            if (strcmp(r->rows[i].kind, kinds[k]) == 0)
                ret[n++] = &r->rows[i];
    assert(n == r->n);
}

static void print_json(const struct report *r, const struct utsname *os)
{
    const struct row *sorted[ROWS_MAX];
    autofree char    *name = user_name();
    json_t           *rows = json_array();
    autojson json_t  *j =
        json_pack("{s:b, s:s, s:{s:i, s:s?}, s:s, s:s, s:o}", "works", engine_works(r), "version",
                  JERBOA_VERSION, "user", "uid", (int)getuid(), "name", name, "kernel", os->release,
                  "machine", os->machine, "checks", rows);

    if (!j)
        abort();
    sort_rows(r, sorted);
    for (size_t i = 0; i < r->n; i++)
        json_array_append_new(rows, row_json(sorted[i]));
    json_dumpf(j, stdout, JSON_INDENT(2));
    putchar('\n');
}

static void print_row(const struct row *row)
{
    enum { INDENT = 35 };

    printf("%-7s  %-5s  %-17s  %s\n", state_names[row->state], row->kind, row->name,
           row->why ? row->why : row->what);
    if (row->fix)
        printf("%*sfix: %s\n", INDENT, "", row->fix);
}

static void print_table(const struct report *r, const struct utsname *os)
{
    const struct row *sorted[ROWS_MAX];
    autofree char    *name = user_name();
    int               off = 0;

    printf("jerboa %s as %s%suid %u on Linux %s %s\n\n", JERBOA_VERSION, name ? name : "",
           name ? ", " : "", (unsigned)getuid(), os->release, os->machine);
    sort_rows(r, sorted);
    for (size_t i = 0; i < r->n; i++) {
        print_row(sorted[i]);
        off += sorted[i]->state == OFF;
    }
    printf("\nThe native engine %s", engine_works(r) ? "works" : "does not work");
    if (engine_works(r) && off > 0)
        printf("; %d of the above %s off", off, off == 1 ? "is" : "are");
    printf(".\n");
}

static int doctor_main(int argc, char **argv)
{
    struct doctor_options o = {0};
    struct err            e = {0};
    struct utsname        os;
    struct report        *r;
    int                   used, status;

    if (options_from_env(options, &o, &e) == 0 &&
        options_from_args(options, &o, argc, argv, &used, &e) == 0 && used < argc)
        err_set(&e, ERR_INVALID, "doctor takes no '%.60s'", argv[used]);
    if (e.kind) {
        fprintf(stderr, "jerboa: %s\n", e.msg);
        return EXIT_USAGE;
    }
    r = calloc(1, sizeof *r);
    if (!r || uname(&os) < 0)
        abort();
    examine(r);
    if (o.json)
        print_json(r, &os);
    else
        print_table(r, &os);
    status = engine_works(r) ? 0 : EXIT_FAILED;
    report_done(r);
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
