#include "sandbox/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "sandbox/held.h"
#include "sandbox/upload.h"

enum { START_MS = 30000 }; /* from the first file to the program's start */

enum run_state { RUN_FILES, RUN_SPAWN, RUN_WAIT, RUN_DONE };

/* V8's last words before it aborts; they may come in two pieces. */
static const char heap_words[] = "heap out of memory";

struct run {
    struct sandbox        *sandbox;
    const struct run_spec *spec;
    const struct run_ops  *ops;
    void                  *owner;
    enum run_state         state;
    bool                   waiting;   /* for the object that the last state started */
    bool                   may_begin; /* a fact: run_begin was called, or need not be */
    bool                   started;
    bool                   succeeded; /* … its owner was told: nothing changes that any more */
    size_t                 next_file;
    struct held           *held;
    uint32_t               life; /* a channel on which nothing comes but the sandbox's end */
    struct process        *process;
    bool                   at_gate;     /* it was held */
    bool                   never_began; /* a fact: it ended there */
    struct deadline        deadline;
    struct later           later;
    int64_t                started_ms;
    char                   stderr_tail[sizeof heap_words];
    struct run_result      result;
};

/* ---- what each state starts ---- */

static void on_held_gone(void *owner)
{
    struct run *r = owner;

    r->held = NULL;
}

static void on_uploaded(void *owner, const struct err *e)
{
    struct run *r = owner;

    r->waiting = false;
    if (e->kind && !r->result.err.kind)
        r->result.err = *e;
    later_ask(&r->later);
}

static void write_next_file(struct run *r)
{
    const struct run_file *f = &r->spec->files[r->next_file++];

    r->waiting = true;
    upload_start(r->sandbox, f->path, 0644, f->bytes, f->size, on_uploaded, r);
}

static const struct process_ops process_ops;

static void spawn(struct run *r)
{
    struct message_spawn m = {.has_stdin = r->spec->has_stdin,
                              .cwd = r->spec->cwd,
                              .argv = r->spec->argv,
                              .env = r->spec->env};
    struct held         *held = r->held;

    r->held = NULL;
    r->at_gate = held && held_fits(held, r->spec);
    if (r->at_gate) {
        r->waiting = true;
        held_release(held, &r->process, &process_ops, r);
        return;
    }
    held_free(held);
    r->process = process_start(r->sandbox, &m, &process_ops, r, &r->result.err);
    r->waiting = r->process != NULL;
}

static void finish(struct run *r)
{
    struct verdict_facts *f = &r->result.facts;

    if (r->result.err.kind && !r->succeeded) { /* it never ran, or nobody saw how it ended */
        f->disk_full = r->sandbox && r->result.err.sys == ENOSPC; /* its files had no room */
        f->lost = !f->cancelled && !f->quota_exceeded && !f->disk_full;
        f->code = -1;
    }
    r->result.verdict = verdict_of(f);
    if (r->sandbox)
        sandbox_close_channel(r->sandbox, r->life);
    held_free(r->held);
    r->ops->done(r->owner, &r->result);
    deadline_done(&r->deadline);
    later_done(&r->later);
    free(r);
}

static void run_step(void *owner)
{
    struct run *r = owner;

    while (!r->waiting) {
        if (r->result.err.kind)
            r->state = RUN_DONE;
        switch (r->state) {
        case RUN_FILES:
            if (r->next_file < r->spec->n_files)
                write_next_file(r);
            else if (r->may_begin)
                r->state = RUN_SPAWN;
            else
                return;
            break;
        case RUN_SPAWN:
            r->state = RUN_WAIT;
            spawn(r);
            break;
        case RUN_WAIT:
            r->state = r->never_began ? RUN_SPAWN : RUN_DONE;
            r->never_began = false;
            break;
        case RUN_DONE:
            finish(r);
            return;
        }
    }
}

/* ---- facts from the process ---- */

static void on_started(void *owner)
{
    struct run *r = owner;

    r->started_ms = clock_ms();
    r->started = true;
    deadline_clear(&r->deadline);
    if (r->spec->timeout_ms > 0)
        deadline_set(&r->deadline, r->spec->timeout_ms);
    r->ops->stdin_room(r->owner);
}

static void watch_stderr(struct run *r, const uint8_t *bytes, size_t size)
{
    enum { KEEP = sizeof heap_words - 2 };
    char   seam[2 * sizeof heap_words];
    size_t kept = strlen(r->stderr_tail), head = size < KEEP ? size : KEEP;

    memcpy(seam, r->stderr_tail, kept);
    memcpy(seam + kept, bytes, head);
    if (memmem(seam, kept + head, heap_words, strlen(heap_words)) ||
        memmem(bytes, size, heap_words, strlen(heap_words)))
        r->result.facts.heap_exhausted = true;
    size_t tail = size < KEEP ? size : KEEP;
    memcpy(r->stderr_tail, bytes + size - tail, tail);
    r->stderr_tail[tail] = '\0';
}

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct run *r = owner;

    if (stream == STREAM_ERR)
        watch_stderr(r, bytes, size);
    r->ops->output(r->owner, stream, bytes, size);
}

static void on_exited(void *owner)
{
    struct run *r = owner;

    deadline_clear(&r->deadline);
    r->result.wall_ms = clock_ms() - r->started_ms;
}

static void on_stdin_room(void *owner)
{
    struct run *r = owner;

    r->ops->stdin_room(r->owner);
}

/* A Node that was held was killed by others, before it took the byte that lets it go: it has run
 * nothing. Commands do that (pkill), and their answer may come before its end. */
static bool ended_at_gate(const struct run *r, const struct process_result *p)
{
    const struct verdict_facts *f = &r->result.facts;
    bool ended_by_us = f->timed_out || f->cancelled || f->output_exceeded || f->quota_exceeded;

    return r->at_gate && !r->result.err.kind && !p->err.kind && p->exited.stdin_bytes == 0 &&
           !ended_by_us;
}

static void on_done(void *owner, const struct process_result *p)
{
    struct run           *r = owner;
    struct verdict_facts *f = &r->result.facts;

    r->process = NULL;
    r->waiting = false;
    later_ask(&r->later);
    r->never_began = ended_at_gate(r, p);
    if (r->never_began) { /* the next one has as long to start as this one had */
        r->started = false;
        deadline_set(&r->deadline, START_MS);
        return;
    }
    if (!r->result.err.kind)
        r->result.err = p->err;
    f->code = p->exited.code;
    f->signal = p->exited.signal;
    f->disk_full = p->exited.disk_full;
    f->oom_kills = p->counters.oom_kills;
    f->forks_refused = p->counters.forks_refused;
    f->watched = p->counters.watched;
    r->result.cpu_us = p->counters.cpu_us ? p->counters.cpu_us : p->exited.cpu_us;
    r->result.peak_bytes = p->counters.peak_bytes;
    r->result.max_rss_bytes = p->exited.max_rss_bytes;
}

static void on_said_all(void *owner, const struct message_exited *m)
{
    struct run *r = owner;
    bool        has_begun = !r->at_gate || m->stdin_bytes > 0;

    if (m->code != 0 || !has_begun || r->result.err.kind || !r->ops->succeeded)
        return;
    r->succeeded = true;
    r->ops->succeeded(r->owner);
}

static const struct process_ops process_ops = {
    .started = on_started,
    .output = on_output,
    .exited = on_exited,
    .said_all = on_said_all,
    .stdin_room = on_stdin_room,
    .done = on_done,
};

/* ---- the end before its time ---- */

static void on_life_frame(void *owner, const struct frame *f)
{
    struct run *r = owner;

    (void)f;
    sandbox_fail(r->sandbox, ERR_INVALID, "the sandbox sent a frame on a channel without a peer");
}

static void on_life_lost(void *owner, const struct err *e)
{
    struct run *r = owner;

    r->sandbox = NULL;
    if (!r->result.err.kind)
        r->result.err = *e;
    later_ask(&r->later);
}

static const struct channel_ops life_ops = {on_life_frame, on_life_lost};

static void on_deadline(void *owner)
{
    struct run *r = owner;

    if (!r->started) { /* an init that does nothing: only its end ends it */
        if (r->sandbox)
            sandbox_fail(r->sandbox, ERR_TIMEOUT, "the program did not start within 30 seconds");
        return;
    }
    r->result.facts.timed_out = true;
    if (r->process)
        process_kill(r->process);
}

void run_end(struct run *r, enum verdict why)
{
    struct verdict_facts *f = &r->result.facts;

    if (f->cancelled || f->output_exceeded || f->quota_exceeded)
        return;
    f->cancelled = why == VERDICT_CANCELLED;
    f->output_exceeded = why == VERDICT_OUTPUT;
    f->quota_exceeded = why == VERDICT_DISK;
    if (r->process)
        process_kill(r->process);
    else if (!r->result.err.kind)
        err_set(&r->result.err, ERR_CANCELLED, "cancelled");
    later_ask(&r->later); /* files on their way are waited for: START_MS bounds that */
}

/* ---- the beginning ---- */

struct run *run_start(struct sandbox *s, const struct run_spec *spec, const struct run_ops *ops,
                      void *owner)
{
    struct run *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    *r = (struct run){.sandbox = s,
                      .spec = spec,
                      .ops = ops,
                      .owner = owner,
                      .held = spec->held,
                      .may_begin = !spec->waits,
                      .result.facts.code = -1};
    deadline_init(&r->deadline, sandbox_base(s), on_deadline, r);
    later_init(&r->later, sandbox_base(s), run_step, r);
    deadline_set(&r->deadline, START_MS);
    r->life = sandbox_open_channel(s, &life_ops, r);
    if (r->held)
        held_pass(r->held, on_held_gone, r);
    later_ask(&r->later);
    return r;
}

void run_begin(struct run *r)
{
    r->may_begin = true;
    later_ask(&r->later);
}

struct process *run_process(struct run *r)
{
    return r->process;
}
