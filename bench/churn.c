/* churn - makes, uses and destroys sandboxes in a row from one process, as a server would over
 * days.
 *
 *   churn RUNTIME_DIR COUNT PROGRAM [ARGS…]
 *
 * Prints one `name value` a line: the median of one whole life in ms, its own resident memory after
 * a tenth of the lives and after all of them, its descriptors before and after. Looking for what is
 * left on the machine is bench/figures.mjs's part. It lies beside jerboa in the build directory, so
 * that the jail and init are found. */
#include <dirent.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/native.h"
#include "sandbox/run.h"
#include "sandbox/sandbox.h"

enum { LIVES_MAX = 100000 };

struct life {
    struct event_base *base;
    struct sandbox    *sandbox;
    struct err         err;
    enum verdict       verdict;
};

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static long resident_kib(void)
{
    long  pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (!f || fscanf(f, "%*d %ld", &pages) != 1)
        abort();
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int  n = -3; /* `.`, `..`, and the directory itself */

    if (!dir)
        abort();
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* ---- one life ---- */

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    (void)owner, (void)stream, (void)bytes, (void)size; /* less than a window: no credit needed */
}

static void on_stdin_room(void *owner)
{
    (void)owner;
}

static void on_run_done(void *owner, const struct run_result *r)
{
    struct life *l = owner;

    l->verdict = r->verdict;
    if (r->verdict != VERDICT_SANDBOX_LOST) /* then it ends by itself */
        sandbox_stop(l->sandbox);
}

static void on_sandbox_done(void *owner, const struct err *e)
{
    struct life *l = owner;

    l->err = *e;
    event_base_loopbreak(l->base);
}

static const struct run_ops     run_ops = {on_output, on_stdin_room, on_run_done};
static const struct sandbox_ops sandbox_ops = {on_sandbox_done};

static int live_once(struct event_base *base, const json_t *plan, const struct run_spec *spec,
                     struct err *e)
{
    struct life l = {.base = base};

    l.sandbox = sandbox_start(base, &native, plan, NULL, &sandbox_ops, &l, e);
    if (!l.sandbox)
        return -1;
    run_start(l.sandbox, spec, &run_ops, &l);
    event_base_dispatch(base);
    *e = l.err;
    if (l.err.kind)
        return -1;
    if (l.verdict != VERDICT_OK)
        return err_set(e, ERR_INTERNAL, "verdict %s", verdict_name(l.verdict));
    return 0;
}

/* ---- all of them ---- */

static int live(const char *runtime_dir, int count, const char **argv, struct err *e)
{
    struct engine_spec spec = {.memory_bytes = 512 << 20,
                               .disk_bytes = 256 << 20,
                               .cpus_milli = 1000,
                               .pids = 512,
                               .fds = 1024,
                               .runtime_dir = runtime_dir};
    struct run_spec    run = {.argv = argv,
                              .env = (const char **)native.environment(&spec),
                              .cwd = "/workspace",
                              .timeout_ms = 30000};
    struct event_base *base = event_base_new();
    autofree double   *ms = calloc((size_t)count, sizeof *ms);
    autojson json_t   *plan = native.plan(&spec, e);
    int                fds = count_descriptors(), i;
    long               early_kib = 0;

    if (!base || !ms)
        abort();
    for (i = 0; plan && i < count; i++) {
        double began = now_ms();
        if (live_once(base, plan, &run, e) < 0)
            break;
        ms[i] = now_ms() - began;
        if (i == count / 10)
            early_kib = resident_kib();
    }
    if (i == count) {
        qsort(ms, (size_t)count, sizeof *ms, by_value);
        printf("median_ms %.2f\nworst_ms %.2f\n", ms[count / 2], ms[count - 1]);
        printf("early_kib %ld\nlate_kib %ld\n", early_kib, resident_kib());
        printf("fds_before %d\nfds_after %d\n", fds, count_descriptors());
    }
    event_base_free(base);
    return i == count ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    long       count = argc < 4 ? 0 : strtol(argv[2], NULL, 10);

    if (count < 1 || count > LIVES_MAX) {
        fprintf(stderr, "usage: churn RUNTIME_DIR COUNT PROGRAM [ARGS…]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (live(argv[1], (int)count, (const char **)argv + 3, &e) < 0) {
        fprintf(stderr, "churn: %s\n", e.msg);
        return 1;
    }
    return 0;
}
