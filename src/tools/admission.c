/* Theory of operation. Who may go at once does, and was never in line. Who stands in line has a
 * tick: every second he is told what he waits for, and at the end of his time to try again. Room
 * that came is given out by the step, from the top of the loop, to the next one who may go; until
 * it has run, a newcomer stands behind who is about to.
 *
 * A line that is full is not closed: the newcomer is let in, and who would come last has to go. So
 * who has many in line cannot keep out who has few. */
#include "tools/admission.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/turns.h"
#include "box/room.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "tools/errors.h"
#include "tools/progress.h"
#include "tools/words.h"

enum {
    LINE_MAX_CALLS = 1024,   /* in all; what they hold is bounded by the transport */
    LINE_MAX_OF_OWNER = 128, /* a session has 256 requests open at most: it keeps some for others */
    TICK_MS = 1000,
    RETRY_MS_MAX = 60000,
};

struct admission {
    struct event_base *base;
    struct boxes      *boxes;
    int64_t            wait_ms;
    struct turns       line;
    struct later       later;
    size_t             admitted; /* from the line, ever */
};

struct waiter {
    struct place      place; /* first: it is found by it */
    struct admission *admission;
    struct mcp_call  *call;
    void (*then)(struct mcp_call *c);
    int64_t         began_ms;
    size_t          admitted_before;
    struct deadline tick;
    struct progress progress;
};

static enum room room_of(const struct waiter *w)
{
    return room_for(w->admission->boxes, mcp_call_owner(w->call));
}

static bool may_go(void *context, const struct place *place)
{
    (void)context;
    return room_of((const struct waiter *)place) == ROOM_IS;
}

static void waiter_free(void *data)
{
    struct waiter *w = data;

    turns_drop(&w->admission->line, &w->place);
    deadline_done(&w->tick);
    progress_done(&w->progress);
    free(w);
}

/* Its call is no waiter's any more. */
static struct mcp_call *release(struct waiter *w)
{
    struct mcp_call *c = w->call;

    mcp_call_set_data(c, NULL, NULL);
    waiter_free(w);
    return c;
}

/* ---- who has to go ---- */

/* As quickly as others went on while it waited, the whole line would be gone in … */
static long long retry_s(const struct waiter *w)
{
    const struct admission *a = w->admission;
    int64_t                 waited = clock_ms() - w->began_ms;
    size_t                  n = a->admitted - w->admitted_before;
    int64_t ms = n > 0 ? waited * (int64_t)(a->line.n + 1) / (int64_t)n : a->wait_ms;

    if (ms > RETRY_MS_MAX)
        ms = RETRY_MS_MAX;
    return ms < 1000 ? 1 : (ms + 999) / 1000;
}

static void refuse(struct waiter *w, enum room why)
{
    struct boxes *boxes = w->admission->boxes;
    long long     retry = retry_s(w);
    char          waited[WORDS_SIZE_MAX] = "0 s";
    size_t        all = room_used(boxes), own = room_used_by(boxes, mcp_call_owner(w->call));

    if (w->admission->wait_ms > 0)
        words_time(w->admission->wait_ms, waited);
    if (why == ROOM_ALL)
        errors_fail(release(w), BUSY, all, waited, retry);
    else if (why == ROOM_MEMORY)
        errors_fail(release(w), LOW_MEMORY, (long long)(room_memory(boxes) >> 20), waited, retry);
    else if (why == ROOM_OWN)
        errors_fail(release(w), OWN_BUSY, own, waited, retry);
    else
        errors_fail(release(w), TOO_MANY, own);
}

static void send_away(struct waiter *w)
{
    size_t    n = w->admission->line.n - 1;
    long long retry = retry_s(w);

    errors_fail(release(w), LONG_LINE, n, retry);
}

static void keep_short(struct admission *a, struct waiter *newcomer)
{
    if (turns_count_same(&a->line, &newcomer->place) > LINE_MAX_OF_OWNER)
        send_away(newcomer); /* of one owner, the newest comes last */
    else if (a->line.n > LINE_MAX_CALLS)
        send_away((struct waiter *)turns_last(&a->line));
}

/* ---- who waits ---- */

static void tell(struct waiter *w, enum room why)
{
    static const char *const reasons[] = {
        [ROOM_IS] = "it is next",
        [ROOM_ALL] = "all are in use",
        [ROOM_OWN] = "you have as many as you may",
        [ROOM_MEMORY] = "the server's machine has too little memory left",
    };
    char sentence[PROGRESS_BYTES];

    snprintf(sentence, sizeof sentence, "waiting for a sandbox, %lld s: %s",
             (long long)(clock_ms() - w->began_ms) / 1000, reasons[why]);
    progress_tell(&w->progress, sentence);
}

static void on_tick(void *owner)
{
    struct waiter *w = owner;
    enum room      why = room_of(w);
    int64_t        left = w->began_ms + w->admission->wait_ms - clock_ms();

    if (why == ROOM_STAYS || (why != ROOM_IS && left <= 0)) {
        refuse(w, why);
        return;
    }
    if (why == ROOM_IS)
        admission_look(w->admission);
    tell(w, why);
    deadline_set(&w->tick, left > 0 && left < TICK_MS ? left : TICK_MS);
}

static void stand_in_line(struct admission *a, struct mcp_call *c, void (*then)(struct mcp_call *c))
{
    struct waiter *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    w->admission = a;
    w->call = c;
    w->then = then;
    w->began_ms = clock_ms();
    w->admitted_before = a->admitted;
    turns_add(&a->line, &w->place, mcp_call_owner(c), c);
    deadline_init(&w->tick, a->base, on_tick, w);
    progress_init(&w->progress, a->base, c);
    mcp_call_set_data(c, w, waiter_free);
    deadline_set(&w->tick, 0);
    keep_short(a, w);
}

/* ---- all of them ---- */

/* Who waits is asked for only where there is room for somebody: each of them looks at all boxes. */
static struct waiter *next_one(struct admission *a)
{
    if (room_for_anybody(a->boxes) != ROOM_IS)
        return NULL;
    return (struct waiter *)turns_take_who_may(&a->line, may_go, NULL);
}

static void step(void *owner)
{
    struct admission *a = owner;
    struct waiter    *w;

    while ((w = next_one(a))) {
        void (*then)(struct mcp_call * c) = w->then;

        a->admitted++;
        then(release(w));
    }
}

void admission_wait(struct admission *a, struct mcp_call *c, void (*then)(struct mcp_call *c))
{
    if (room_for(a->boxes, mcp_call_owner(c)) == ROOM_IS &&
        !turns_find_who_may(&a->line, may_go, NULL))
        then(c);
    else
        stand_in_line(a, c, then);
}

void admission_look(struct admission *a)
{
    if (a->line.n > 0)
        later_ask(&a->later);
}

struct admission *admission_new(struct event_base *base, struct boxes *boxes, int64_t wait_ms)
{
    struct admission *a = calloc(1, sizeof *a);

    if (!a)
        abort();
    *a = (struct admission){.base = base, .boxes = boxes, .wait_ms = wait_ms};
    turns_init(&a->line);
    later_init(&a->later, base, step, a);
    return a;
}

void admission_free(struct admission *a)
{
    if (!a)
        return;
    assert(a->line.n == 0);
    later_done(&a->later);
    free(a);
}
