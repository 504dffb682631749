#include "store/gc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "store/downloads.h"
#include "store/entry.h"
#include "store/runtime.h"
#include "store/store.h"

/* Directories of entries. */
static const char *const parts[] = {"runtimes", "layers", "tools"};

enum { PARTS = sizeof parts / sizeof parts[0] };

struct candidate {
    int     parent_fd; /* borrowed */
    char   *path;      /* below the store */
    int64_t bytes, used_ms;
};

struct gc {
    const struct gc_spec *spec;
    int                   root_fd, part_fds[PARTS];
    struct candidate     *list;
    size_t                n;
    char                  kept[NAME_MAX + 1]; /* the default runtime, or "" */
    struct gc_result      result;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void add(struct gc *g, int parent_fd, const char *part, const char *name)
{
    autofd int fd = tree_open_dir(parent_fd, name);

    if (fd < 0)
        return;
    g->list = reallocarray(g->list, g->n + 1, sizeof *g->list);
    if (!g->list)
        abort();
    struct candidate *c = &g->list[g->n++];
    *c = (struct candidate){.parent_fd = parent_fd, .used_ms = entry_used_ms(fd)};
    c->path = *part ? str_format("%s/%s", part, name) : str_dup(name);
    tree_size(fd, &c->bytes, NULL); /* what cannot be counted goes all the same */
}

static void add_part(struct gc *g, int fd, const char *part)
{
    DIR           *dir = tree_list(fd);
    struct dirent *d;

    while (dir && (d = tree_next(dir)))
        if (d->d_name[0] != '.')
            add(g, fd, part, d->d_name);
    if (dir)
        closedir(dir);
}

static int by_last_use(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    return (x->used_ms > y->used_ms) - (x->used_ms < y->used_ms);
}

static const char *name_of(const struct candidate *c)
{
    const char *slash = strrchr(c->path, '/');

    return slash ? slash + 1 : c->path;
}

static bool is_kept(const struct gc *g, const struct candidate *c)
{
    return c->parent_fd == g->part_fds[0] && strcmp(name_of(c), g->kept) == 0;
}

static bool must_go(const struct gc *g, const struct candidate *c)
{
    return now_ms() - c->used_ms > g->spec->max_age_ms ||
           (g->spec->max_bytes >= 0 && g->result.left_bytes > g->spec->max_bytes);
}

static void consider(struct gc *g, const struct candidate *c)
{
    if (is_kept(g, c) || !must_go(g, c))
        return;
    if (!entry_remove(c->parent_fd, name_of(c))) {
        g->result.held++;
        return;
    }
    g->result.removed++;
    g->result.removed_bytes += c->bytes;
    g->result.left_bytes -= c->bytes;
    g->spec->removed(g->spec->owner, c->path, c->bytes);
}

static void sweep(struct gc *g)
{
    entry_sweep(g->root_fd);
    for (int i = 0; i < PARTS; i++)
        if (g->part_fds[i] >= 0)
            entry_sweep(g->part_fds[i]);
    downloads_sweep();
    downloads_drop_old();
}

static void find_kept(struct gc *g)
{
    struct runtime runtime;

    if (runtime_newest(RUNTIME_DEFAULT, &runtime, NULL) == 0)
        snprintf(g->kept, sizeof g->kept, "%s", strrchr(runtime.dir, '/') + 1);
}

static int open_store(struct gc *g, struct err *e)
{
    char path[STORE_PATH_MAX];

    TRY(store_path("", path, e));
    g->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (g->root_fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "%s", path);
    for (int i = 0; i < PARTS; i++)
        g->part_fds[i] = tree_open_dir(g->root_fd, parts[i]);
    return 1;
}

static void collect(struct gc *g)
{
    int64_t before, after;

    tree_size(g->root_fd, &before, NULL);
    sweep(g);
    tree_size(g->root_fd, &after, NULL);
    g->result.removed_bytes = before > after ? before - after : 0;
    g->result.left_bytes = after;
    find_kept(g);
    for (int i = 0; i < PARTS; i++)
        if (g->part_fds[i] >= 0)
            add_part(g, g->part_fds[i], parts[i]);
    add(g, g->root_fd, "", "cache");
    if (g->n > 0)
        qsort(g->list, g->n, sizeof *g->list, by_last_use);
    for (size_t i = 0; i < g->n; i++)
        consider(g, &g->list[i]);
}

int gc_run(const struct gc_spec *spec, struct gc_result *ret, struct err *e)
{
    struct gc g = {.spec = spec, .root_fd = -1, .part_fds = {-1, -1, -1}};
    int       there = open_store(&g, e);

    if (there > 0)
        collect(&g);
    for (size_t i = 0; i < g.n; i++)
        free(g.list[i].path);
    free(g.list);
    for (int i = 0; i < PARTS; i++)
        fd_close(&g.part_fds[i]);
    fd_close(&g.root_fd);
    *ret = g.result;
    return there < 0 ? -1 : 0;
}
