/* A fetch waits for its turn, runs, and is over when its program was reaped and its output has
 * ended. Callbacks write a fact down and ask for the step, which alone starts, tells and frees. A
 * cancelled one has no owner any more and goes the same way: its program was killed. */
#include "tools/fetches.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "base/turns.h"
#include "base/version.h"
#include "loop/child.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "loop/stream.h"

enum { READ_ROOM = 1 << 18, WAIT_MS = 3 * 60 * 1000 /* for its turn */ };

/* How many may run when one more begins. Eight slow ones may take a minute: a call that has none
 * need not wait for them, and an owner who has none not for the calls of others. */
static const struct {
    int running_max;
    struct place *(*take)(struct turns *t);
} limits[] = {
    {8, turns_take},
    {12, turns_take_first_of_call},
    {16, turns_take_first_of_owner},
};

struct fetch {
    TAILQ_ENTRY(fetch) entry;
    struct fetches *fetches;
    struct place    place;
    char           *words[FETCHES_WORDS_MAX + 1];
    int64_t         limit_ms;
    struct child    child;
    struct stream  *out;
    struct buf      text;
    struct deadline deadline;
    bool            runs, exited, ended; /* its program; its output */
    int             status;
    struct err      err;
    void (*done)(void *owner, const char *text, size_t size,
                 const struct err *e); /* NULL: cancelled */
    void *owner;
};

struct fetches {
    struct event_base *base;
    struct later       later;
    TAILQ_HEAD(fetch_list, fetch) all;
    struct turns turns;
    int          running;
};

/* ---- facts ---- */

static void on_exited(void *owner, int status)
{
    struct fetch *f = owner;

    f->exited = true;
    f->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    later_ask(&f->fetches->later);
}

static void on_input(void *owner, struct buf *in, bool ended)
{
    struct fetch *f = owner;

    if (!f->err.kind && in->size > FETCHES_ANSWER_MAX - f->text.size) {
        err_set(&f->err, ERR_LIMIT, "the answer is longer than %d KiB", FETCHES_ANSWER_MAX >> 10);
        child_kill(&f->child);
    }
    if (!f->err.kind)
        buf_add(&f->text, in->data, in->size);
    buf_drop(in, in->size);
    f->ended = f->ended || ended;
    later_ask(&f->fetches->later);
}

static void on_too_late(void *owner)
{
    struct fetch *f = owner;

    if (!f->runs) {
        err_set(&f->err, ERR_LIMIT,
                "too much is asked of the registry at once, and its turn did not come within %d s: "
                "try again later",
                WAIT_MS / 1000);
        f->exited = f->ended = true;
        later_ask(&f->fetches->later);
        return;
    }
    err_set(&f->err, ERR_TIMEOUT, "it took longer than %lld s", (long long)f->limit_ms / 1000);
    child_kill(&f->child);
}

/* ---- one fetch ---- */

static const struct stream_ops stream_ops = {.input = on_input};

static int start(struct fetch *f, struct err *e)
{
    autofree char *program = program_find("jerboa-fetch", e);
    const char    *argv[FETCHES_WORDS_MAX + 3] = {"jerboa-fetch", version_answer};
    autofd int     nothing = open("/dev/null", O_RDWR | O_CLOEXEC), in = -1, out = -1;
    int            ends[2];

    if (!program)
        return -1;
    if (nothing < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    in = ends[0], out = ends[1];
    for (size_t i = 0; f->words[i]; i++)
        argv[i + 2] = f->words[i];
    struct child_fd fds[] = {{nothing, 0}, {out, 1}, {STDERR_FILENO, 2}, {-1, -1}};
    TRY(child_start(&f->child, f->fetches->base, program, argv, (const char *const *)environ, fds,
                    on_exited, f, e));
    f->out = stream_new(f->fetches->base, take_fd(&in), -1, READ_ROOM, 0, &stream_ops, f);
    deadline_set(&f->deadline, f->limit_ms);
    return 0;
}

static void begin(struct fetch *f)
{
    if (start(f, &f->err) < 0)
        f->exited = f->ended = true;
    f->runs = true;
    f->fetches->running++;
}

static void read_status(struct fetch *f)
{
    if (f->err.kind || f->status == 0)
        return;
    if (f->status < 0 || f->text.size == 0) {
        err_set(&f->err, ERR_INTERNAL, "jerboa-fetch ended without an answer");
        return;
    }
    err_set(&f->err, ERR_UNAVAILABLE, "%s", buf_text(&f->text));
    f->err.msg[strcspn(f->err.msg, "\n")] = '\0';
}

static void release(struct fetch *f)
{
    TAILQ_REMOVE(&f->fetches->all, f, entry);
    turns_drop(&f->fetches->turns, &f->place);
    if (f->runs)
        f->fetches->running--;
    deadline_done(&f->deadline);
    if (f->out) {
        stream_free(f->out);
        child_done(&f->child);
    }
    buf_done(&f->text);
    for (size_t i = 0; f->words[i]; i++)
        free(f->words[i]);
    free(f);
}

static void finish(struct fetch *f)
{
    deadline_clear(&f->deadline);
    read_status(f);
    if (f->done && f->err.kind)
        f->done(f->owner, NULL, 0, &f->err);
    else if (f->done)
        f->done(f->owner, buf_text(&f->text), f->text.size, &f->err);
    release(f);
}

/* ---- all of them ---- */

static struct fetch *find_over(const struct fetches *all)
{
    struct fetch *f;

    TAILQ_FOREACH (f, &all->all, entry)
        if ((f->exited && f->ended) || (!f->runs && !f->done))
            return f;
    return NULL;
}

static struct fetch *take_next(struct fetches *all)
{
    struct place *place = NULL;

    for (size_t i = 0; !place && i < sizeof limits / sizeof limits[0]; i++)
        if (all->running < limits[i].running_max)
            place = limits[i].take(&all->turns);
    return place ? (struct fetch *)((char *)place - offsetof(struct fetch, place)) : NULL;
}

/* Telling one that it is over may cancel or start others: the list is looked at anew. */
static void step(void *owner)
{
    struct fetches *all = owner;
    struct fetch   *f;

    do {
        while ((f = find_over(all)))
            finish(f);
        while ((f = take_next(all)))
            begin(f);
    } while (find_over(all));
}

struct fetch *fetch_start(
    struct fetches *all, const struct mcp_call *call, const char *const *words, int64_t limit_ms,
    void (*done)(void *owner, const char *text, size_t size, const struct err *e), void *owner)
{
    struct fetch *f = calloc(1, sizeof *f);

    if (!f)
        abort();
    f->fetches = all;
    for (size_t i = 0; words[i]; i++) {
        assert(i < FETCHES_WORDS_MAX);
        f->words[i] = str_dup(words[i]);
    }
    f->limit_ms = limit_ms;
    f->done = done;
    f->owner = owner;
    buf_init(&f->text, FETCHES_ANSWER_MAX + 1); /* buf_text ends it */
    deadline_init(&f->deadline, all->base, on_too_late, f);
    deadline_set(&f->deadline, WAIT_MS);
    TAILQ_INSERT_TAIL(&all->all, f, entry);
    turns_add(&all->turns, &f->place, mcp_call_owner(call), call);
    later_ask(&all->later);
    return f;
}

void fetch_cancel(struct fetch *f)
{
    f->done = NULL;
    f->owner = NULL;
    if (f->out)
        child_kill(&f->child);
    later_ask(&f->fetches->later);
}

struct event_base *fetches_base(const struct fetches *f)
{
    return f->base;
}

struct fetches *fetches_new(struct event_base *base)
{
    struct fetches *f = calloc(1, sizeof *f);

    if (!f)
        abort();
    f->base = base;
    TAILQ_INIT(&f->all);
    turns_init(&f->turns);
    later_init(&f->later, base, step, f);
    return f;
}

void fetches_free(struct fetches *all)
{
    struct fetch *f;

    if (!all)
        return;
    while ((f = TAILQ_FIRST(&all->all))) {
        if (f->out)
            child_end(&f->child);
        release(f);
    }
    later_done(&all->later);
    free(all);
}
