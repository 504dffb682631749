#include "engine/native.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/version.h"
#include "engine/layout.h"

#define RUNTIME "/opt/node"
#define DISK "/.jerboa/disk"
#define INIT "/.jerboa/init"

enum {
    INIT_MEMORY = 152 << 20, /* beside the files it writes: windows of its connections */
};

/* ---- the plan: fixed parts ---- */

struct row {
    const char *kind, *target, *more; /* more: source or text, as the kind wants */
    int         mode;
};

static const struct row devices[] = {
    {"device", "/dev/null", "/dev/null"},       {"device", "/dev/zero", "/dev/zero"},
    {"device", "/dev/full", "/dev/full"},       {"device", "/dev/random", "/dev/random"},
    {"device", "/dev/urandom", "/dev/urandom"}, {"link", "/dev/fd", "/proc/self/fd"},
    {"link", "/dev/stdin", "/proc/self/fd/0"},  {"link", "/dev/stdout", "/proc/self/fd/1"},
    {"link", "/dev/stderr", "/proc/self/fd/2"}, {0},
};

static const struct row made_up_etc[] = {
    {"file", "/etc/passwd",
     "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"},
    {"file", "/etc/group", "root:x:0:\nnogroup:x:65534:\n"},
    {"file", "/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
    {"file", "/etc/hostname", "sandbox\n"},
    {"file", "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
    {0},
};

/* Everything that code may write is one tmpfs, so that one cap holds and one look tells that it is
 * full. It is mounted aside, its parts are bound where they belong, and the mount itself is
 * covered: what code writes on top of a layer lies there, too (jail/attach.h). */
static const struct row writable[] = {
    {"dir", DISK "/workspace", NULL, 0755},
    {"inner", "/workspace", DISK "/workspace"},
    {"file", "/workspace/package.json", "{\"type\":\"module\"}\n"},
    {"dir", DISK "/tmp", NULL, 01777},
    {"inner", "/tmp", DISK "/tmp"},
    {"dir", DISK "/shm", NULL, 01777},
    {"inner", "/dev/shm", DISK "/shm"},
    {"dir", DISK "/root", NULL, 0700},
    {"inner", "/root", DISK "/root"},
    {"aside", DISK, NULL},
    {"link", "/var/tmp", "/tmp"},
    {0},
};

/* What proc shows of the machine and not of the sandbox. */
static const struct row masks[] = {
    {"proc", "/proc", NULL},
    {"mask", "/proc/acpi", NULL},
    {"mask", "/proc/buddyinfo", NULL},
    {"mask", "/proc/bus", NULL},
    {"mask", "/proc/cmdline", NULL},
    {"mask", "/proc/consoles", NULL},
    {"mask", "/proc/diskstats", NULL},
    {"mask", "/proc/driver", NULL},
    {"mask", "/proc/fs", NULL},
    {"mask", "/proc/iomem", NULL},
    {"mask", "/proc/ioports", NULL},
    {"mask", "/proc/locks", NULL},
    {"mask", "/proc/mtrr", NULL},
    {"mask", "/proc/pagetypeinfo", NULL},
    {"mask", "/proc/partitions", NULL},
    {"mask", "/proc/pressure", NULL},
    {"mask", "/proc/slabinfo", NULL},
    {"mask", "/proc/swaps", NULL},
    {"mask", "/proc/tty", NULL},
    {"mask", "/proc/vmallocinfo", NULL},
    {"mask", "/proc/zoneinfo", NULL},
    {"mask", "/proc/asound", NULL},
    {"mask", "/proc/config.gz", NULL},
    {"mask", "/proc/interrupts", NULL},
    {"mask", "/proc/kallsyms", NULL},
    {"mask", "/proc/kcore", NULL},
    {"mask", "/proc/keys", NULL},
    {"mask", "/proc/key-users", NULL},
    {"mask", "/proc/kmsg", NULL},
    {"mask", "/proc/kpagecgroup", NULL},
    {"mask", "/proc/kpagecount", NULL},
    {"mask", "/proc/kpageflags", NULL},
    {"mask", "/proc/latency_stats", NULL},
    {"mask", "/proc/modules", NULL},
    {"mask", "/proc/sched_debug", NULL},
    {"mask", "/proc/scsi", NULL},
    {"mask", "/proc/sysrq-trigger", NULL},
    {"mask", "/proc/timer_list", NULL},
    {"readonly", "/proc/irq", NULL},
    {"readonly", "/proc/sys", NULL},
    {0},
};

/* Directories at the top that a merged /usr makes links. */
static const char *const tops[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", NULL};

/* Parts of the host's /etc that programs in /usr do not work without. */
static const char *const host_etc[] = {"/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime",
                                       NULL};

/* Where distributions keep the certificates. Inside there is a file at the first, and the others
 * lead there: what the host's /usr has was built for one of them. */
#define BUNDLE "/etc/ssl/certs/ca-certificates.crt"

static const char *const bundles[] = {
    BUNDLE,                             /* Debian, Arch, Alpine */
    "/etc/pki/tls/certs/ca-bundle.crt", /* Fedora: curl */
    "/etc/pki/tls/cert.pem",            /* Fedora: OpenSSL */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem", /* openSUSE */
    "/etc/ssl/cert.pem",      /* Alpine: OpenSSL */
    NULL,
};

static const char gate_text[] =
#include "gate.cjs.h"
    ;

static const struct row gate[] = {{"file", layout_gate, gate_text}, {0}};

/* ---- the plan: composing ---- */

static json_t *append(json_t *entries, json_t *entry)
{
    if (!entry || json_array_append_new(entries, entry) < 0)
        abort();
    return entry;
}

static void add_row(json_t *entries, const struct row *r)
{
    bool    is_source = strcmp(r->kind, "inner") == 0 || strcmp(r->kind, "device") == 0;
    json_t *entry = append(entries, json_pack("{s:s, s:s, s:s*}", "kind", r->kind, "target",
                                              r->target, is_source ? "source" : "text", r->more));

    if (r->mode)
        json_object_set_new(entry, "mode", json_integer(r->mode));
}

static void add_rows(json_t *entries, const struct row *rows)
{
    for (; rows->kind; rows++)
        add_row(entries, rows);
}

static json_t *add_bind(json_t *entries, const char *source, const char *target)
{
    return append(entries,
                  json_pack("{s:s, s:s, s:s}", "kind", "bind", "source", source, "target", target));
}

static void add_file(json_t *entries, const char *target, char *text_take)
{
    append(entries,
           json_pack("{s:s, s:s, s:s}", "kind", "file", "target", target, "text", text_take));
    free(text_take);
}

static void add_system(json_t *entries)
{
    char    text[PATH_MAX];
    ssize_t n;

    add_bind(entries, "/usr", "/usr");
    for (const char *const *top = tops; *top; top++) {
        n = readlink(*top, text, sizeof text - 1);
        if (n > 0) {
            text[n] = '\0';
            add_row(entries, &(struct row){"link", *top, text});
        } else if (access(*top, F_OK) == 0) {
            add_bind(entries, *top, *top);
        }
    }
}

bool native_is_readable(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

static const char *system_bundle(void)
{
    for (const char *const *b = bundles; *b; b++)
        if (access(*b, R_OK) == 0)
            return *b;
    return NULL;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;

    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* As OpenSSL's programs: who names a file does not want the system's; unless it is that one. */
static const char *named_bundle(void)
{
    const char *named = getenv("SSL_CERT_FILE"), *system = system_bundle();

    if (!named || named[0] != '/' || !native_is_readable(named))
        return NULL;
    return system && is_same_file(named, system) ? NULL : named;
}

const char *native_bundle(void)
{
    const char *named = named_bundle();

    return named ? named : system_bundle();
}

bool native_bundle_is_named(void)
{
    return named_bundle() != NULL;
}

static bool has_more_certificates(const struct engine_spec *spec)
{
    return spec->certificates_text || (spec->certificates && spec->certificates[0]);
}

static void add_copy(json_t *entries, const char *source)
{
    append(entries, json_pack("{s:s, s:s, s:s}", "kind", "certificates", "source", source, "target",
                              BUNDLE));
}

/* The system's own is shown as it is; as soon as files of the user's count, copies of all. */
static void add_certificates(json_t *entries, const struct engine_spec *spec)
{
    const char *bundle = native_bundle(), *text = spec->certificates_text;

    if (!bundle && !has_more_certificates(spec))
        return;
    if (!named_bundle() && !has_more_certificates(spec)) {
        add_bind(entries, bundle, BUNDLE);
    } else {
        add_file(entries, BUNDLE, str_format("%s\n", text ? text : ""));
        if (bundle)
            add_copy(entries, bundle);
        for (const char *const *file = spec->certificates; file && *file; file++)
            add_copy(entries, *file);
    }
    for (const char *const *other = bundles + 1; *other; other++)
        add_row(entries, &(struct row){"link", *other, BUNDLE});
}

static void add_etc(json_t *entries, const struct engine_spec *spec)
{
    add_rows(entries, made_up_etc);
    for (const char *const *path = host_etc; *path; path++)
        if (access(*path, R_OK) == 0)
            add_bind(entries, *path, *path);
    add_certificates(entries, spec);
    if (spec->npmrc)
        add_row(entries, &(struct row){"file", "/etc/npmrc", spec->npmrc});
    if (!spec->host_network) /* any address will do: all queries go to init */
        add_row(entries, &(struct row){"file", "/etc/resolv.conf", "nameserver 198.18.0.2\n"});
    else if (access("/etc/resolv.conf", R_OK) == 0)
        add_bind(entries, "/etc/resolv.conf", "/etc/resolv.conf");
}

/* Files that libuv reads to learn its limits, in the form of both cgroup versions. Without them
 * Node takes the host's memory for its own and is killed where it would have survived. */
static void add_limits_for_node(json_t *entries, const struct engine_spec *spec)
{
    static const char *const memory_files[] = {
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.soft_limit_in_bytes",
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory.high",
        NULL,
    };
    enum { PERIOD_US = 100000 };
    long long quota = spec->cpus_milli * PERIOD_US / 1000;

    for (const char *const *file = memory_files; *file; file++)
        add_file(entries, *file, str_format("%lld\n", (long long)spec->memory_bytes));
    add_file(entries, "/sys/fs/cgroup/cpu.max", str_format("%lld %d\n", quota, PERIOD_US));
    add_file(entries, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", str_format("%lld\n", quota));
    add_file(entries, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", str_format("%d\n", PERIOD_US));
}

static void add_disk(json_t *entries, const struct engine_spec *spec)
{
    append(entries, json_pack("{s:s, s:s, s:I, s:I}", "kind", "tmpfs", "target", DISK, "bytes",
                              (json_int_t)spec->disk_bytes, "inodes",
                              (json_int_t)engine_inodes(spec->disk_bytes)));
    add_rows(entries, writable);
}

static void add_user_dirs(json_t *entries, const struct engine_spec *spec)
{
    if (spec->files_dir) {
        json_t *files = add_bind(entries, spec->files_dir, "/workspace/files");
        json_object_set_new(files, "writable", json_true());
        json_object_set_new(files, "asOwner", json_true());
    } else {
        add_row(entries, &(struct row){"dir", "/workspace/files", NULL, 0755});
    }
    if (spec->dir)
        json_object_set_new(add_bind(entries, spec->dir, "/workspace/dir"), "asOwner", json_true());
}

static void add_binds(json_t *entries, const struct engine_spec *spec)
{
    for (size_t i = 0; i < spec->n_binds; i++) {
        json_t *entry = add_bind(entries, spec->binds[i].source, spec->binds[i].target);
        json_object_set_new(entry, "asOwner", json_true());
        json_object_set_new(entry, "writable", json_boolean(spec->binds[i].writable));
    }
}

static json_t *places_of(const struct engine_spec *spec)
{
    json_t *list = json_array();

    for (size_t i = 0; i < spec->n_host_loopback; i++)
        append(list, json_pack("{s:s, s:i}", "address", spec->host_loopback[i].address, "port",
                               spec->host_loopback[i].port));
    return list;
}

static json_t *plan(const struct engine_spec *spec, struct err *e)
{
    autofree char *init = program_find("jerboa-init", e);
    json_int_t     init_memory = spec->disk_bytes + INIT_MEMORY;
    json_t        *entries, *made;

    if (!init)
        return NULL;
    entries = json_array();
    add_system(entries);
    add_bind(entries, spec->runtime_dir, RUNTIME);
    add_bind(entries, init, INIT);
    add_rows(entries, gate);
    add_rows(entries, devices);
    add_etc(entries, spec);
    add_limits_for_node(entries, spec);
    add_disk(entries, spec);
    add_user_dirs(entries, spec);
    add_binds(entries, spec);
    add_rows(entries, masks);
    made = json_pack("{s:s, s:s, s:b, s:b, s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:o}", "version",
                     version_own, "init", INIT, "hostNetwork", spec->host_network, "egress",
                     !spec->host_network, "hostLoopback", places_of(spec), "strict", spec->strict,
                     "memoryBytes", (json_int_t)spec->memory_bytes, "initMemoryBytes", init_memory,
                     "cpusMilli", (json_int_t)spec->cpus_milli, "pids", (json_int_t)spec->pids,
                     "fds", (json_int_t)spec->fds, "entries", entries);
    if (!made)
        abort();
    return made;
}

static const char search_path[] = "PATH=" RUNTIME "/bin:/usr/local/bin:/usr/bin:/bin";

#define ENVIRONMENT search_path, "HOME=/root", "LANG=C.UTF-8", "USER=root"

static const char *const *environment(const struct engine_spec *spec)
{
    static const char *const plain[] = {ENVIRONMENT, NULL};
    static const char *const with_bundle[] = {ENVIRONMENT, "NODE_EXTRA_CA_CERTS=" BUNDLE,
                                              "SSL_CERT_FILE=" BUNDLE, NULL};

    return native_bundle() || has_more_certificates(spec) ? with_bundle : plain;
}

/* ---- the jail ---- */

static int start(const json_t *plan, struct engine_ends *ret, struct child *jail,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e)
{
    autofree char *path = program_find("jerboa-jail", e);
    autofd int     in_read = -1, in_write = -1, out_read = -1, out_write = -1, ours = -1, its = -1;
    int            ends[2];
    const char    *argv[] = {"jerboa-jail", NULL};

    (void)plan; /* the sandbox sends it */
    if (!path)
        return -1;
    TRY(engine_open_pipe(&in_read, &in_write, ENGINE_PIPE_LARGE, e));
    TRY(engine_open_pipe(&out_read, &out_write, ENGINE_PIPE_LARGE, e));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(e, "socketpair");
    ours = ends[0], its = ends[1];

    struct child_fd fds[] = {{in_read, 0}, {out_write, 1}, {its, 3}, {-1, -1}};
    TRY(child_start(jail, base, path, argv, NULL, fds, exited, owner, e));
    *ret = (struct engine_ends){take_fd(&in_write), take_fd(&out_read), take_fd(&ours), -1, ""};
    return 0;
}

static int sweep(const struct engine *engine, const char *name, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e)
{
    autofree char *path = program_find("jerboa-jail", e);
    autofd int     null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const char    *argv[] = {"jerboa-jail", "sweep", NULL};

    (void)engine;
    (void)name; /* it finds all that are dead */
    if (!path)
        return -1;
    if (null < 0)
        return err_sys(e, "/dev/null");
    struct child_fd fds[] = {{null, 0}, {null, 1}, {null, 2}, {-1, -1}};
    return child_start(child, base, path, argv, NULL, fds, exited, owner, e);
}

const struct engine native = {.name = "native",
                              .plan = plan,
                              .environment = environment,
                              .start = start,
                              .sweep = sweep,
                              .end_ms = 5000,
                              .ahead_bytes = 16 << 20};

int native_print_steps(struct err *e)
{
    autofree char *path = program_find("jerboa-jail", e);
    const char    *argv[] = {"jerboa-jail", "steps", NULL};
    char          *env[] = {NULL};
    pid_t          pid;

    if (!path)
        return -1;
    fflush(stdout);
    errno = posix_spawn(&pid, path, NULL, NULL, (char *const *)argv, env);
    if (errno)
        return err_sys(e, "start %s", path);
    waitpid(pid, NULL, 0);
    return 0;
}
