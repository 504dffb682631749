/* Theory of operation. What is asked is one line each, by --format: ids are compared and handed
 * back, never parsed. A run is a file of the store, runs/DAEMON/ID, locked while it lives; the
 * kernel drops the lock however it ends. Of each daemon there is a directory, for one knows nothing
 * of what another has left to do. So whoever can lock the file of a container's label knows that
 * nobody is left who would stop it; and a container whose file is not in this store is somebody
 * else's. Who sweeps holds that lock meanwhile. A container may come to be after its run: so the
 * first sweep that finds it over and nothing of it left writes that into the file, and a later one
 * removes the file. */
#include "store/container.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/reason.h"
#include "base/str.h"
#include "store/capture.h"
#include "store/image.h"
#include "store/orphans.h"
#include "store/store.h"

enum {
    ASK_MS = 10000,    /* a busy machine takes a second or two; who waits for more gives up first */
    REMOVE_MS = 20000, /* podman gives who does not heed SIGTERM ten seconds first */
    PULL_MS = 15 * 60 * 1000,
    ID_MAX = 64,
    IMAGE_MAX = 255,
    SWEEP_MAX = 64,
    SWEEP_MS = 10000, /* who waits wants a sandbox; the next one goes on */
    LOCK_MS = SWEEP_MS,
    ORPHAN_MS = 3000, /* so long making one takes, or the end of one that lost its server */
    LATE_S = 60, /* so long a daemon may take to make what a client asked for that was killed */
};

static int refuse(const char *program, const struct capture *c, struct err *e)
{
    char why[REASON_MAX];

    return err_set(e, ERR_UNAVAILABLE, "%s does not answer: %s", program,
                   reason_find(c->said, why, sizeof why) ? why : "it does not say why");
}

/* Whoever asks twice for one purpose has one time for both. */
static int run_client(const char *program, const char *const *argv, int64_t end_ms,
                      struct capture *ret, struct err *e)
{
    char    path[PATH_MAX];
    int64_t left_ms = end_ms - clock_ms();

    TRY(program_on_path(program, path, e));
    if (left_ms > 0 && capture_run_quietly(path, argv, (int)left_ms, ret, e) == 0)
        return 0;
    if (left_ms > 0 && e->kind != ERR_TIMEOUT)
        return -1;
    return err_set(e, ERR_UNAVAILABLE, "%s does not answer: nothing came within %lld s", program,
                   (long long)(left_ms > 0 ? left_ms + 999 : ASK_MS) / 1000);
}

static int ask(const char *program, const char *const *argv, int64_t end_ms, struct capture *ret,
               struct err *e)
{
    TRY(run_client(program, argv, end_ms, ret, e));
    return ret->status == 0 ? 0 : refuse(program, ret, e);
}

int container_version(const char *program, char ret[64], struct err *e)
{
    const char *const argv[] = {program, "version", "--format", "{{.Server.Version}}", NULL};
    struct capture    c = {0};
    char              path[PATH_MAX];

    if (program_on_path(program, path, e) < 0) {
        e->kind = ERR_NOT_FOUND;
        return -1;
    }
    TRY(ask(program, argv, clock_ms() + ASK_MS, &c, e));
    if (!*c.output)
        return refuse(program, &c, e);
    snprintf(ret, 64, "%.63s", c.output);
    return 0;
}

/* An image that is not there and a client that failed look the same to who inspects: only an empty
 * list says that it is missing, and may be pulled. */
static int missing(const char *program, const char *image, const struct capture *inspected,
                   int64_t end_ms, struct err *e)
{
    const char       *slash = strrchr(image, '/');
    bool              has_tag = strpbrk(slash ? slash : image, ":@");
    autofree char    *tagged = str_format("%s%s", image, has_tag ? "" : ":latest");
    const char *const list[] = {program, "images", "--quiet", tagged, NULL}; /* else of every tag */
    struct capture    c = {0};

    TRY(ask(program, list, end_ms, &c, e));
    return *c.output ? refuse(program, inspected, e)
                     : err_set(e, ERR_NOT_FOUND, "%s has no image '%.100s'", program, image);
}

/* "24.1" and "lts" are short for images of node, as on native; for a daemon they are others. */
static void spell_out(const char *image, char ret[IMAGE_MAX + 1])
{
    bool is_short = !strpbrk(image, ":/") && strcmp(image, "node") != 0 &&
                    image_parse(image, &(struct image){0}, NULL) == 0;

    snprintf(ret, IMAGE_MAX + 1, "%s%s", is_short ? "node:" : "", image);
}

int container_find(const char *program, const char *image, struct runtime *ret, struct err *e)
{
    static const char format[] =
        "{{.Id}} {{range $at, $_ := .Config.Volumes}}+{{end}}{{range .Config.Env}} {{.}}{{end}}",
                      variable[] = " NODE_VERSION=";
    char              name[IMAGE_MAX + 1];
    const char *const inspect[] = {program, "image", "inspect", "--format", format, name, NULL};
    struct capture    c = {0};
    int64_t           end_ms = clock_ms() + ASK_MS;

    TRY(container_check(image, e));
    spell_out(image, name);
    TRY(run_client(program, inspect, end_ms, &c, e));
    if (c.status != 0)
        return missing(program, name, &c, end_ms, e);
    if (str_starts(c.output + strcspn(c.output, " "), " +"))
        return err_set(e, ERR_LIMIT,
                       "the image '%.80s' declares volumes, which no limit would hold for: it "
                       "cannot be a sandbox's, unless it is built without VOLUME",
                       image);
    *ret = (struct runtime){.is_host = true};
    const char *version = strstr(c.output, variable);
    if (version)
        snprintf(ret->version, sizeof ret->version, "%.*s",
                 (int)strcspn(version + strlen(variable), " "), version + strlen(variable));
    c.output[strcspn(c.output, " ")] = '\0';
    return str_copy(ret->dir, sizeof ret->dir, c.output);
}

/* ---- pulling ---- */

/* Its last line that says anything. */
struct last_words {
    char   line[1024];
    size_t size; /* of the line that is being read */
};

static void take_words(struct last_words *w, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            w->size = 0;
            continue;
        }
        if (w->size == 0)
            memset(w->line, 0, sizeof w->line);
        if (w->size < sizeof w->line - 1)
            w->line[w->size++] = bytes[i];
    }
}

/* Shows what it says until it says no more; -1: it takes too long. */
static int follow(int fd, struct last_words *ret)
{
    int64_t end_ms = clock_ms() + PULL_MS;
    char    bytes[4096];

    for (;;) {
        int64_t       left_ms = end_ms - clock_ms();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int           ready = left_ms <= 0 ? 0 : poll(&p, 1, (int)left_ms);
        ssize_t       n = ready > 0 ? read(fd, bytes, sizeof bytes) : -1;
        if (ready == 0)
            return -1;
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
            return 0;
        if (n <= 0)
            continue;
        take_words(ret, bytes, (size_t)n);
        (void)!write(STDERR_FILENO, bytes, (size_t)n); /* who does not look misses nothing */
    }
}

/* Its progress on stdout, which is ours for the answer, goes to our stderr: where that is a
 * terminal, it draws bars. A quarter of an hour is long: it dies with us, however we end. */
static pid_t start_pull(const char *program, const char *image, int said_fd, struct err *e)
{
    const char *const argv[] = {program, "pull", image, NULL};
    char              path[PATH_MAX];
    pid_t             self = getpid(), pid;

    TRY(program_on_path(program, path, e));
    autofd int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0)
        return err_sys(e, "/dev/null");
    pid = fork();
    if (pid < 0)
        return err_sys(e, "run %s", path);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == self && dup2(nothing, 0) == 0 && dup2(2, 1) == 1 && dup2(said_fd, 2) == 2)
        execv(path, (char *const *)argv);
    _exit(127);
}

static int pull(const char *program, const char *image, struct err *e)
{
    struct last_words said = {0};
    char              why[REASON_MAX], version[64];
    autofd int        read_fd = -1, write_fd = -1;
    int               ends[2], status = 0;
    pid_t             pid = 0;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    read_fd = ends[0], write_fd = ends[1];
    pid = start_pull(program, image, write_fd, e);
    TRY(pid);
    fd_close(&write_fd);
    int followed = follow(read_fd, &said);
    if (followed < 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (followed < 0)
        return err_set(e, ERR_TIMEOUT, "%s did not pull the image '%.100s' within %d minutes",
                       program, image, PULL_MS / 60000);
    reason_take(said.line, why, sizeof why);
    if (status == 0)
        return 0;
    TRY(container_version(program, version, e)); /* else it is not the image that is to blame */
    return err_set(e, ERR_NOT_FOUND, "%s cannot pull the image '%.100s': %s", program, image,
                   *why ? why : "it does not say why");
}

/* ---- images ---- */

int container_check(const char *image, struct err *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
    size_t n = strspn(image, allowed);

    if (n == 0 || n > IMAGE_MAX - strlen("node:") || image[n] || !isalnum((unsigned char)image[0]))
        return err_set(e, ERR_INVALID, "image \"%.80s\" is not known: it is no name of an image",
                       image);
    return 0;
}

int container_ensure(const char *program, const char *image, struct runtime *ret, struct err *e)
{
    char name[IMAGE_MAX + 1];

    if (container_find(program, image, ret, e) == 0)
        return 0;
    if (e->kind != ERR_NOT_FOUND)
        return -1;
    *e = (struct err){0};
    spell_out(image, name);
    TRY(pull(program, name, e));
    return container_find(program, image, ret, e);
}

int container_sibling(const struct runtime *runtime, char ret[32], struct err *e)
{
    size_t digits = strspn(runtime->version, "0123456789");

    if (digits == 0 || digits > 4)
        return err_set(e, ERR_UNAVAILABLE,
                       "the image does not tell its version of Node.js (NODE_VERSION): it cannot "
                       "be given dependencies");
    snprintf(ret, 32, "node:%.*s", (int)digits, runtime->version);
    return 0;
}

/* ---- runs that are over ---- */

static bool is_id(const char *s)
{
    size_t n = 0;

    while (isxdigit((unsigned char)s[n]))
        n++;
    return n > 0 && n <= ID_MAX && !s[n];
}

static int open_runs(const char *daemon, struct err *e)
{
    autofree char *part = str_format("runs/%s", daemon);

    return store_ensure(part, e);
}

/* Who sweeps may have it for a moment, and remove the file. */
static int try_lock(int runs_fd, const char *run_id)
{
    autofd int  fd = openat(runs_fd, run_id, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT, 0600);
    struct stat st;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0 || ftruncate(fd, 0) < 0)
        return -1;
    if (st.st_nlink > 0)
        return take_fd(&fd);
    errno = EAGAIN;
    return -1;
}

int container_lock(const char *daemon, const char *run_id, struct err *e)
{
    autofd int dir = open_runs(daemon, e);
    int64_t    end_ms = clock_ms() + LOCK_MS;
    int        fd;

    TRY(dir);
    while ((fd = try_lock(dir, run_id)) < 0 && errno == EAGAIN && clock_ms() < end_ms)
        poll(NULL, 0, 10);
    return fd < 0 ? err_sys(e, "lock runs/%s/%.64s", daemon, run_id) : fd;
}

/* Makes nothing: the whole store may have been removed meanwhile. */
void container_unlock(const char *daemon, const char *run_id)
{
    autofree char *part = str_format("runs/%s/%s", daemon, run_id);
    char           path[STORE_PATH_MAX];

    if (store_path(part, path, NULL) == 0)
        unlink(path);
}

/* Its file, locked, if nobody else has it: then it is over. */
static int take_over(int runs_fd, const char *run_id)
{
    autofd int fd = is_id(run_id) ? openat(runs_fd, run_id, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;

    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? take_fd(&fd) : -1;
}

/* True: nothing of it can come any more. */
static bool is_settled(int fd)
{
    static const char over[] = "over\n";
    struct stat       st;

    if (fstat(fd, &st) < 0)
        return false;
    if (st.st_size > 0)
        return st.st_mtime + LATE_S < time(NULL);
    (void)!write(fd, over, strlen(over)); /* a full disk: the next one will */
    return false;
}

/* Of podman, before it removes what it knows. True: none is left. */
static bool end_orphans(const char *program, const char *names, int64_t end_ms)
{
    int64_t soon_ms = clock_ms() + ORPHAN_MS;

    return strcmp(program, "podman") != 0 ||
           orphans_end(names, soon_ms < end_ms ? soon_ms : end_ms);
}

static int remove_one(const char *program, const char *id, struct err *e)
{
    const char *const argv[] = {program, "rm", "--force", "--volumes", id, NULL};
    struct capture    c = {0};

    return ask(program, argv, clock_ms() + REMOVE_MS, &c, e);
}

int container_remove(const char *program, const char *name, struct err *e)
{
    end_orphans(program, name, INT64_MAX);
    return remove_one(program, name, e);
}

/* True: the daemon has nothing of it, any more. */
static bool end_all(const char *program, const char *run_id, int64_t end_ms)
{
    autofree char    *label = str_format("label=mcp-server-run-id=%s", run_id);
    autofree char    *names = str_format("jerboa-%s-*", run_id);
    struct capture    c = {0};
    const char *const list[] = {program,      "ps",       "--all", "--quiet",
                                "--no-trunc", "--filter", label,   NULL};
    struct err        e = {0};
    bool              is_quiet = end_orphans(program, names, end_ms);

    for (int i = 0; i < SWEEP_MAX && clock_ms() < end_ms; i++) {
        if (ask(program, list, end_ms, &c, &e) < 0)
            return false;
        if (!*c.output)
            return is_quiet;
        if (!is_id(c.output) || remove_one(program, c.output, &e) < 0)
            return false;
    }
    return false;
}

void container_sweep(const char *program, const char *daemon)
{
    struct err           e = {0};
    int                  dir = open_runs(daemon, &e);
    DIR                 *runs = dir < 0 ? NULL : fdopendir(dir);
    const struct dirent *d;
    int64_t              end_ms = clock_ms() + SWEEP_MS;

    if (!runs) {
        fd_close(&dir);
        return;
    }
    while (clock_ms() < end_ms && (d = readdir(runs))) {
        autofd int fd = take_over(dir, d->d_name);
        if (fd >= 0 && end_all(program, d->d_name, end_ms) && is_settled(fd))
            unlinkat(dir, d->d_name, 0);
    }
    closedir(runs);
}
