#include "sandbox/process.h"

#include <signal.h>
#include <stdlib.h>

#include "loop/deadline.h"
#include "loop/later.h"

enum { END_MS = 5000 }; /* for init to tell the exit and the ends, once everything was killed */

struct process {
    struct sandbox           *sandbox; /* NULL once it is lost */
    uint32_t                  id;
    struct later              later;
    struct deadline           deadline;
    const struct process_ops *ops;
    void                     *owner;
    struct process_result     result;
    uint32_t                  stdin_credit;
    uint32_t                  received[STREAM_COUNT]; /* bytes not given back yet */
    uint32_t                  consumed[STREAM_COUNT]; /* of those, not told to init yet */

    /* facts */
    bool started, runs, exited, failed, kill_wanted, kill_sent, group_ended, stdin_ended;
    bool progress; /* bytes came or left since the deadline was set */
    bool told;     /* … its owner, that it said all */
    bool ended[STREAM_COUNT];
};

static void send_u32(struct process *p, enum frame_type type, uint8_t stream, uint32_t v)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    message_pack_u32(&b, v);
    sandbox_send(p->sandbox, type, p->id, stream, b.data, b.size);
}

/* What only waits need not be watched; the jail is told when it is more than that. */
static void run(struct process *p)
{
    sandbox_send_jail(p->sandbox, FRAME_GROUP_RUN, p->id, NULL, 0);
    p->runs = true;
}

/* What only waited is its main process and nothing else. */
static void end_group(struct process *p)
{
    if (!p->runs)
        process_signal(p, SIGKILL);
    if (!p->sandbox)
        return;
    if (p->kill_wanted)
        sandbox_wake_jail(p->sandbox); /* one that was stopped would kill nothing */
    sandbox_send_jail(p->sandbox, p->runs ? FRAME_GROUP_END : FRAME_GROUP_DROP, p->id, NULL, 0);
}

static void step(void *owner)
{
    struct process *p = owner;
    bool            over = p->exited && p->ended[STREAM_OUT] && p->ended[STREAM_ERR];

    if (over && !p->failed && !p->told && p->ops->said_all) {
        p->told = true;
        p->ops->said_all(p->owner, &p->result.exited);
        later_ask(&p->later); /* behind who waits for nothing else, and answers */
        return;
    }
    if ((p->exited || p->failed || p->kill_wanted) && !p->kill_sent) {
        p->kill_sent = true;
        deadline_set(&p->deadline, END_MS);
        end_group(p);
    }
    if (p->sandbox && !(p->group_ended && (over || p->failed)))
        return;
    p->ops->done(p->owner, &p->result);
    if (p->sandbox)
        sandbox_close_channel(p->sandbox, p->id);
    deadline_done(&p->deadline);
    later_done(&p->later);
    free(p);
}

static void fail(struct process *p, enum err_kind kind, const char *sentence)
{
    if (!p->result.err.kind)
        err_set(&p->result.err, kind, "%s", sentence);
    p->failed = true;
    later_ask(&p->later);
}

/* Init broke the rules: the whole sandbox ends, and we hear of it as everybody else does. */
static void violate(struct process *p, const char *sentence)
{
    sandbox_fail(p->sandbox, ERR_INVALID, sentence);
}

/* Everything in it is dead, so init has only to say so. What it cannot send for want of credit is
 * not its fault: then our own reader is slow, and there is time. */
static void on_deadline(void *owner)
{
    struct process *p = owner;
    bool            may_send = !p->exited;

    if (!p->sandbox) /* it is lost, and the step is on its way */
        return;
    for (int i = STREAM_OUT; i <= STREAM_ERR; i++)
        may_send |= !p->ended[i] && p->received[i] < WINDOW_FROM_INIT;
    if (may_send && !p->progress)
        sandbox_fail(p->sandbox, ERR_TIMEOUT, "the sandbox does not tell how its program ended");
    if (!p->group_ended)
        sandbox_wake_jail(p->sandbox); /* somebody may have stopped it */
    p->progress = false;
    deadline_set(&p->deadline, END_MS);
}

/* ---- frames: what a hostile init could send is checked here, once ---- */

static void on_data(struct process *p, const struct frame *f)
{
    if (f->stream == STREAM_IN || p->ended[f->stream] ||
        f->size > WINDOW_FROM_INIT - p->received[f->stream]) {
        violate(p, "the sandbox sent output past its end or its window");
        return;
    }
    p->received[f->stream] += (uint32_t)f->size;
    p->progress = true;
    p->ops->output(p->owner, f->stream, f->payload, f->size);
}

static void on_end(struct process *p, const struct frame *f)
{
    p->ended[f->stream] = true;
    if (f->stream == STREAM_IN && p->ops->stdin_room)
        p->ops->stdin_room(p->owner);
    later_ask(&p->later);
}

static void on_credit(struct process *p, const struct frame *f)
{
    uint32_t   bytes;
    struct err e = {0};

    if (message_unpack_u32(f, &bytes, &e) < 0 || f->stream != STREAM_IN ||
        bytes > WINDOW_TO_INIT - p->stdin_credit) {
        violate(p, "the sandbox gave credit that it does not have");
        return;
    }
    p->stdin_credit += bytes;
    if (p->ops->stdin_room)
        p->ops->stdin_room(p->owner);
}

static void on_exited(struct process *p, const struct frame *f)
{
    struct message_exited m;
    struct err            e = {0};

    if (p->exited || message_unpack_exited(f, &m, &e) < 0) {
        violate(p, "the sandbox told an exit twice or wrongly");
        return;
    }
    p->result.exited = m;
    p->exited = true;
    later_ask(&p->later);
    p->ops->exited(p->owner);
}

static void on_error(struct process *p, const struct frame *f)
{
    struct err e = {0};

    message_take_error(f, &e);
    if (!p->result.err.kind)
        p->result.err = e;
    p->failed = true;
    later_ask(&p->later);
}

static void on_group_ended(struct process *p, const struct frame *f)
{
    struct err e = {0};

    if (message_unpack_group_ended(f, &p->result.counters, &e) < 0)
        fail(p, ERR_INTERNAL, e.msg);
    p->group_ended = true;
    later_ask(&p->later);
}

static void on_frame(void *owner, const struct frame *f)
{
    struct process *p = owner;
    bool            begins = f->type == FRAME_STARTED || f->type == FRAME_ERROR;

    if (f->type != FRAME_GROUP_ENDED && begins == p->started) { /* one of the two first, and once */
        violate(p, "the sandbox told a beginning twice or not at all");
        return;
    }
    switch (f->type) {
    case FRAME_STARTED:
        p->started = true;
        p->ops->started(p->owner);
        break;
    case FRAME_DATA:
        on_data(p, f);
        break;
    case FRAME_END:
        on_end(p, f);
        break;
    case FRAME_CREDIT:
        on_credit(p, f);
        break;
    case FRAME_EXITED:
        on_exited(p, f);
        break;
    case FRAME_ERROR:
        on_error(p, f);
        break;
    case FRAME_GROUP_ENDED:
        on_group_ended(p, f);
        break;
    default:
        violate(p, "the sandbox sent a frame that fits no process");
    }
}

static void on_lost(void *owner, const struct err *e)
{
    struct process *p = owner;

    p->sandbox = NULL;
    fail(p, ERR_UNAVAILABLE, e->msg);
}

static const struct channel_ops channel_ops = {on_frame, on_lost};

/* ---- the face ---- */

static struct process *start(struct sandbox *s, struct message_spawn *m, bool is_held,
                             const struct process_ops *ops, void *owner, struct err *e)
{
    struct process    *p = calloc(1, sizeof *p);
    autobuf struct buf b;

    if (!p)
        abort();
    *p = (struct process){.sandbox = s, .ops = ops, .owner = owner, .stdin_credit = WINDOW_TO_INIT};
    p->id = sandbox_open_group(s, &channel_ops, p);
    m->group = sandbox_has_groups(s) ? p->id : 0;
    buf_init(&b, FRAME_MAX);
    if (message_pack_spawn(&b, m) < 0) {
        sandbox_close_channel(s, p->id);
        free(p);
        err_set(e, ERR_LIMIT, "arguments and environment are over 1 MiB or 4,096 words");
        return NULL;
    }
    later_init(&p->later, sandbox_base(s), step, p);
    deadline_init(&p->deadline, sandbox_base(s), on_deadline, p);
    sandbox_send(s, FRAME_SPAWN, p->id, 0, b.data, b.size);
    if (!is_held)
        run(p);
    return p;
}

struct process *process_start(struct sandbox *s, struct message_spawn *m,
                              const struct process_ops *ops, void *owner, struct err *e)
{
    return start(s, m, false, ops, owner, e);
}

struct process *process_hold(struct sandbox *s, struct message_spawn *m,
                             const struct process_ops *ops, void *owner, struct err *e)
{
    return start(s, m, true, ops, owner, e);
}

void process_kill(struct process *p)
{
    p->kill_wanted = true;
    later_ask(&p->later);
}

void process_signal(struct process *p, int number)
{
    if (p->sandbox)
        send_u32(p, FRAME_SIGNAL, 0, (uint32_t)number);
}

void process_release(struct process *p, const struct process_ops *ops, void *owner)
{
    p->ops = ops;
    p->owner = owner;
    run(p);
}

bool process_is_live(const struct process *p)
{
    return p->sandbox && !p->exited && !p->failed && !p->kill_wanted;
}

size_t process_stdin_room(const struct process *p)
{
    bool nobody_reads = p->exited || p->failed || p->stdin_ended || p->ended[STREAM_IN];

    return nobody_reads || !p->sandbox ? SIZE_MAX : p->stdin_credit;
}

void process_write_stdin(struct process *p, const uint8_t *bytes, size_t size)
{
    if (process_stdin_room(p) == SIZE_MAX)
        return;
    p->stdin_credit -= (uint32_t)size;
    while (size > 0) {
        size_t n = size < FRAME_DATA_MAX ? size : FRAME_DATA_MAX;
        sandbox_send(p->sandbox, FRAME_DATA, p->id, STREAM_IN, bytes, n);
        bytes += n;
        size -= n;
    }
}

void process_end_stdin(struct process *p)
{
    if (process_stdin_room(p) == SIZE_MAX)
        return;
    p->stdin_ended = true;
    sandbox_send(p->sandbox, FRAME_END, p->id, STREAM_IN, NULL, 0);
}

void process_consumed(struct process *p, uint8_t stream, size_t bytes)
{
    enum { WORTH_A_FRAME = WINDOW_FROM_INIT / 4 };

    p->consumed[stream] += (uint32_t)bytes;
    p->progress = true;
    if (p->consumed[stream] < WORTH_A_FRAME || !p->sandbox)
        return;
    p->received[stream] -= p->consumed[stream];
    send_u32(p, FRAME_CREDIT, stream, p->consumed[stream]);
    p->consumed[stream] = 0;
}
