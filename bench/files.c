/* files DIR COUNT - what FILES_DIR costs a run. Makes COUNT files below a new directory in DIR, in
 * directories of 100, and prints `name value` lines: open_ms (the walk at the start), run_ms
 * (median of a run that changes nothing: mark to done), run_worst_ms, change_ms (a run that writes
 * one file), walk_ms (a run that lost its events), quota_mb (how far a writer at full speed gets
 * beyond its quota before that is known). Removes what it made. */
#include <event2/event.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/files.h"

enum { RUNS = 201, PER_DIR = 100, QUOTA = 64 << 20, BLOCK = 1 << 16 };

static struct event_base *base;
static struct files      *files;
static bool               done, over;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void on_over(void *owner)
{
    (void)owner;
    over = true;
}

static void on_done(void *owner, const struct files_row *rows, size_t n, bool cut)
{
    (void)rows;
    (void)cut;
    *(size_t *)owner = n;
    done = true;
}

static const struct files_mark_ops mark_ops = {on_over, on_done};

static void write_file(const char *path, const char *text)
{
    if (file_write_text(AT_FDCWD, path, text, NULL) < 0)
        exit(1);
}

/* One run; returns what it cost us, without what it did itself. */
static double run(void (*work)(const char *dir), const char *dir, size_t want)
{
    double             began = now_ms(), pause;
    size_t             rows = 0;
    struct files_mark *m = files_mark(files, 0, &mark_ops, &rows);

    pause = now_ms();
    if (work)
        work(dir);
    pause = now_ms() - pause;
    done = false;
    files_mark_end(m);
    while (!done)
        event_base_loop(base, EVLOOP_ONCE);
    files_mark_free(m);
    if (rows != want)
        exit(1);
    return now_ms() - began - pause;
}

static void write_one(const char *dir)
{
    char path[256];

    snprintf(path, sizeof path, "%s/0/0", dir);
    write_file(path, "changed");
}

/* More events than the kernel queues, while nobody reads them. */
static void write_too_often(const char *dir)
{
    char path[256];
    int  fds[2];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/0/%d", dir, i);
        fds[i] = open(path, O_WRONLY | O_CLOEXEC);
    }
    for (int i = 0; i < 40000; i++)
        if (write(fds[i % 2], "x", 1) != 1)
            exit(1);
    close(fds[0]);
    close(fds[1]);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(void (*work)(const char *), const char *dir, size_t want, double *ret_worst)
{
    static double ms[RUNS];

    for (int i = 0; i < RUNS; i++)
        ms[i] = run(work, dir, want);
    qsort(ms, RUNS, sizeof ms[0], compare);
    *ret_worst = ms[RUNS - 1];
    return ms[RUNS / 2];
}

/* A child that writes as fast as it can, ended when it is over. */
static double beyond_quota(const char *dir)
{
    static char        block[BLOCK];
    char               path[256];
    size_t             rows;
    struct stat        st;
    struct files_mark *m = files_mark(files, QUOTA, &mark_ops, &rows);
    pid_t              pid = fork();

    snprintf(path, sizeof path, "%s/large", dir);
    if (pid == 0) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        for (int i = 0; i < 1 << 15 && write(fd, block, BLOCK) == BLOCK; i++)
            ;
        _exit(0);
    }
    while (!over)
        event_base_loop(base, EVLOOP_ONCE);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    files_mark_free(m);
    if (stat(path, &st) < 0)
        exit(1);
    return (double)(st.st_size - QUOTA) / 1e6;
}

static void make_tree(const char *dir, int count)
{
    char path[256];

    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%d", dir, i / PER_DIR);
        if (i % PER_DIR == 0 && mkdir(path, 0755) < 0)
            exit(1);
        snprintf(path, sizeof path, "%s/%d/%d", dir, i / PER_DIR, i % PER_DIR);
        write_file(path, "unchanged");
    }
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

int main(int argc, char **argv)
{
    char   dir[128];
    double began, worst, ignored;

    if (argc != 3)
        return 2;
    snprintf(dir, sizeof dir, "%s/jerboa-files-XXXXXX", argv[1]);
    if (!mkdtemp(dir))
        return 1;
    make_tree(dir, atoi(argv[2]));
    base = event_base_new();
    began = now_ms();
    files = files_open(base, dir, NULL, NULL, NULL, NULL);
    if (!files)
        return 1;
    printf("open_ms %.3f\n", now_ms() - began);
    printf("run_ms %.4f\n", median(NULL, dir, 0, &worst));
    printf("run_worst_ms %.4f\n", worst);
    printf("change_ms %.4f\n", median(write_one, dir, 1, &ignored));
    printf("walk_ms %.3f\n", run(write_too_often, dir, 2));
    printf("quota_mb %.1f\n", beyond_quota(dir));
    files_close(files);
    event_base_free(base);
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0;
}
