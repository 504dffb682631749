#include "box/runtimes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "base/version.h"
#include "engine/native.h"
#include "loop/child.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "store/container.h"

enum { GETTING_MS = 30 * 60 * 1000 }; /* its own steps have limits; somebody may have stopped it */

struct runtime_wait {
    TAILQ_ENTRY(runtime_wait) entry;
    struct getting *getting;
    void (*done)(void *owner, const struct runtime *runtime, const struct err *e);
    void *owner;
};

/* One image on its way. */
struct getting {
    LIST_ENTRY(getting) entry;
    struct runtimes     *of;
    const struct engine *engine;
    char                *image;
    TAILQ_HEAD(runtime_waits, runtime_wait) waits;
    struct child    child; /* jerboa-fetch, when it had to be asked */
    int             answer_fd;
    struct later    later;
    struct deadline deadline;
    bool            may_pull, fetches;
    bool            is_telling; /* those who wait, one after the other */
    struct runtime  runtime;
    struct err      err;
};

/* An image of a container engine that was there. */
struct known {
    LIST_ENTRY(known) entry;
    const struct engine *engine;
    char                *image;
    struct runtime       runtime;
};

struct runtimes {
    struct event_base *base;
    LIST_HEAD(gettings, getting) all;
    LIST_HEAD(knowns, known) known;
};

static const struct known *find_known(const struct runtimes *r, const struct engine *engine,
                                      const char *image)
{
    const struct known *k;

    LIST_FOREACH (k, &r->known, entry)
        if (k->engine == engine && strcmp(k->image, image) == 0)
            return k;
    return NULL;
}

int runtimes_find(const struct runtimes *r, const struct engine *engine, const char *image,
                  struct runtime *ret, struct err *e)
{
    const struct known *k;

    if (engine == &native)
        return runtime_find(image, ret, e);
    k = find_known(r, engine, image);
    if (!k)
        return err_set(e, ERR_NOT_FOUND, "the image '%.100s' was not looked for yet", image);
    *ret = k->runtime;
    return 0;
}

static void getting_free(struct getting *g)
{
    LIST_REMOVE(g, entry);
    later_done(&g->later);
    deadline_done(&g->deadline);
    fd_close(&g->answer_fd);
    free(g->image);
    free(g);
}

/* One that is killed loses nothing: the next one goes on from there. */
static void end_fetch(struct getting *g)
{
    if (!g->fetches)
        return;
    child_end_all(&g->child);
    child_done(&g->child);
}

static void tell_all(void *owner)
{
    struct getting *g = owner;

    g->is_telling = true;
    while (!TAILQ_EMPTY(&g->waits)) {
        struct runtime_wait *w = TAILQ_FIRST(&g->waits);
        TAILQ_REMOVE(&g->waits, w, entry);
        w->done(w->owner, g->err.kind ? NULL : &g->runtime, &g->err);
        free(w);
    }
    if (g->fetches)
        child_done(&g->child);
    getting_free(g);
}

/* `ID VERSION`, the second may be empty; or why not. */
static void take_image(struct getting *g, int status, const char *line)
{
    struct known *k;
    size_t        id = strcspn(line, " ");

    if (status != 0 || id == 0 || id >= sizeof g->runtime.dir) {
        if (*line && status != 0)
            err_set(&g->err, status == CONTAINER_UNAVAILABLE ? ERR_UNAVAILABLE : ERR_NOT_FOUND,
                    "%s", line);
        else
            err_set(&g->err, ERR_UNAVAILABLE,
                    "%s was asked for the image '%.100s', and nobody answered: try again",
                    g->engine->name, g->image);
        return;
    }
    g->runtime = (struct runtime){.is_host = true};
    memcpy(g->runtime.dir, line, id);
    str_copy(g->runtime.version, sizeof g->runtime.version, line[id] ? line + id + 1 : "");
    k = calloc(1, sizeof *k);
    if (!k)
        abort();
    *k = (struct known){.engine = g->engine, .image = str_dup(g->image), .runtime = g->runtime};
    LIST_INSERT_HEAD(&g->of->known, k, entry);
}

/* Its answer is one line, less than a pipe holds: it was written when the program ended. */
static void on_fetched(void *owner, int status)
{
    struct getting *g = owner;
    char            line[4097];
    ssize_t         n = read(g->answer_fd, line, sizeof line - 1);

    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    later_ask(&g->later);
    if (g->err.kind) /* it was too late */
        return;
    if (g->engine == &native)
        runtime_take_answer(g->image, status, line, &g->runtime, &g->err);
    else
        take_image(g, status, line);
}

static void on_late(void *owner)
{
    struct getting *g = owner;

    err_set(&g->err, ERR_TIMEOUT, "%.100s was not there within %d minutes", g->image,
            GETTING_MS / 60000);
    child_kill(&g->child); /* those below it go with it */
}

static int fetch(struct getting *g, struct event_base *base, struct err *e)
{
    bool               is_native = g->engine == &native;
    autofree char     *program = program_find(is_native ? "jerboa-fetch" : "jerboa", e);
    const char *const  of_native[] = {"jerboa-fetch", version_answer, "runtime", g->image, NULL};
    const char *const  of_others[] = {"jerboa",        "container", g->may_pull ? "pull" : "find",
                                      g->engine->name, g->image,    NULL};
    const char *const *argv = is_native ? of_native : of_others;
    autofd int         nothing = open("/dev/null", O_RDWR | O_CLOEXEC), out = -1;
    int                ends[2];

    if (!program)
        return -1;
    if (nothing < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(e, "pipe");
    g->answer_fd = ends[0], out = ends[1];
    fcntl(out, F_SETFL, 0);
    struct child_fd fds[] = {{nothing, 0}, {out, 1}, {STDERR_FILENO, 2}, {-1, -1}};
    TRY(child_start(&g->child, base, program, argv, (const char *const *)environ, fds, on_fetched,
                    g, e));
    g->fetches = true;
    deadline_set(&g->deadline, GETTING_MS);
    return 0;
}

static struct getting *getting_new(struct runtimes *r, const struct engine *engine,
                                   const char *image, bool may_pull)
{
    struct getting *g = calloc(1, sizeof *g);

    if (!g)
        abort();
    g->of = r;
    g->engine = engine;
    g->image = str_dup(image);
    g->may_pull = may_pull;
    g->answer_fd = -1;
    TAILQ_INIT(&g->waits);
    LIST_INSERT_HEAD(&r->all, g, entry);
    later_init(&g->later, r->base, tell_all, g);
    deadline_init(&g->deadline, r->base, on_late, g);
    if (runtimes_find(r, engine, image, &g->runtime, &g->err) < 0 && g->err.kind == ERR_NOT_FOUND) {
        g->err = (struct err){0};
        fetch(g, r->base, &g->err);
    }
    if (!g->fetches)
        later_ask(&g->later);
    return g;
}

static struct getting *find(const struct runtimes *r, const struct engine *engine,
                            const char *image)
{
    struct getting *g;

    LIST_FOREACH (g, &r->all, entry)
        if (g->engine == engine && strcmp(g->image, image) == 0)
            return g;
    return NULL;
}

struct runtime_wait *
runtimes_get(struct runtimes *r, const struct engine *engine, const char *image, bool may_pull,
             void (*done)(void *owner, const struct runtime *runtime, const struct err *e),
             void *owner)
{
    struct runtime_wait *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    w->getting = find(r, engine, image);
    if (!w->getting)
        w->getting = getting_new(r, engine, image, may_pull);
    w->done = done;
    w->owner = owner;
    TAILQ_INSERT_TAIL(&w->getting->waits, w, entry);
    return w;
}

bool runtime_wait_fetches(const struct runtime_wait *w)
{
    return w->getting->fetches;
}

/* What a registry of npm sent stays in the store, and the next one goes on from there; what a
 * daemon pulls for nobody is ended. */
void runtime_wait_cancel(struct runtime_wait *w)
{
    struct getting *g = w->getting;

    TAILQ_REMOVE(&g->waits, w, entry);
    free(w);
    if (g->engine == &native || g->is_telling || !TAILQ_EMPTY(&g->waits))
        return;
    end_fetch(g);
    getting_free(g);
}

struct runtimes *runtimes_new(struct event_base *base)
{
    struct runtimes *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->base = base;
    LIST_INIT(&r->all);
    LIST_INIT(&r->known);
    return r;
}

void runtimes_free(struct runtimes *r)
{
    while (!LIST_EMPTY(&r->all)) {
        struct getting *g = LIST_FIRST(&r->all);
        g->is_telling = true; /* nobody is told: it is freed here */
        while (!TAILQ_EMPTY(&g->waits))
            runtime_wait_cancel(TAILQ_FIRST(&g->waits));
        end_fetch(g);
        getting_free(g);
    }
    while (!LIST_EMPTY(&r->known)) {
        struct known *k = LIST_FIRST(&r->known);
        LIST_REMOVE(k, entry);
        free(k->image);
        free(k);
    }
    free(r);
}
