/* Theory of operation. Each try is a DIAL; an ERROR is followed by a pause and the next. The server
 * inside sees the connection that succeeded, and a reset could end it: an `error` event without a
 * listener ends a Node process. So it is closed politely: we END our direction, and the channel
 * stays, without its user, until the code ended the other. It holds nothing here and at most a
 * window inside, because no credit is given; it ends with the code or the sandbox at the latest. */
#include "sandbox/port_wait.h"

#include <assert.h>
#include <stdlib.h>

#include "loop/deadline.h"
#include "loop/later.h"
#include "pipe/message.h"

enum { PAUSE_MS = 4, PAUSE_MAX_MS = 64 };

struct port_wait {
    struct sandbox *sandbox; /* NULL once it is lost */
    uint32_t        life;    /* a channel on which nothing comes but the sandbox's end */
    uint32_t        id;      /* of the try that is under way, or 0 */
    uint16_t        port;
    struct later    later;
    struct deadline deadline, pause;
    int64_t         pause_ms;
    void (*done)(void *owner, bool answered);
    void *owner;

    /* facts */
    bool answered, too_late;
    bool refused; /* the last try */
    bool over;    /* the code closed what had answered */
    bool told;    /* done was called */
};

static const struct channel_ops channel_ops;

static void close_try(struct port_wait *w)
{
    if (w->sandbox && w->id)
        sandbox_close_channel(w->sandbox, w->id);
    w->id = 0;
}

static void port_wait_free(struct port_wait *w)
{
    if (w->sandbox && w->id && !w->over)
        sandbox_send(w->sandbox, FRAME_RESET, w->id, 0, NULL, 0);
    close_try(w);
    if (w->sandbox)
        sandbox_close_channel(w->sandbox, w->life);
    deadline_done(&w->deadline);
    deadline_done(&w->pause);
    later_done(&w->later);
    free(w);
}

static void try_once(struct port_wait *w)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    message_pack_dial(&b, &(struct message_dial){w->port});
    w->id = sandbox_open_channel(w->sandbox, &channel_ops, w);
    sandbox_send(w->sandbox, FRAME_DIAL, w->id, 0, b.data, b.size);
}

static void tell(struct port_wait *w, bool answered)
{
    w->told = true;
    deadline_clear(&w->deadline);
    deadline_clear(&w->pause);
    if (answered && w->sandbox)
        sandbox_send(w->sandbox, FRAME_END, w->id, STREAM_IN, NULL, 0);
    w->done(w->owner, answered);
}

static void step(void *owner)
{
    struct port_wait *w = owner;

    if (w->refused) {
        w->refused = false;
        close_try(w);
        deadline_set(&w->pause, w->pause_ms);
        w->pause_ms = w->pause_ms < PAUSE_MAX_MS ? 2 * w->pause_ms : PAUSE_MAX_MS;
    }
    if (!w->told && (w->answered || w->too_late || !w->sandbox))
        tell(w, w->answered);
    if (w->told && (!w->answered || w->over || !w->sandbox))
        port_wait_free(w);
}

/* ---- facts ---- */

static void on_frame(void *owner, const struct frame *f)
{
    struct port_wait *w = owner;

    if (f->type == FRAME_STARTED && !w->answered && !w->refused)
        w->answered = true;
    else if (f->type == FRAME_ERROR && !w->answered && !w->refused)
        w->refused = true;
    else if (w->answered && (f->type == FRAME_END || f->type == FRAME_RESET))
        w->over = true;
    else if (!w->answered || (f->type != FRAME_DATA && f->type != FRAME_CREDIT))
        sandbox_fail(w->sandbox, ERR_INVALID, "the sandbox sent a frame that fits no connection");
    later_ask(&w->later);
}

static void on_life_frame(void *owner, const struct frame *f)
{
    struct port_wait *w = owner;

    (void)f;
    sandbox_fail(w->sandbox, ERR_INVALID, "the sandbox sent a frame on a channel without a peer");
}

static void on_lost(void *owner, const struct err *e)
{
    struct port_wait *w = owner;

    (void)e;
    w->sandbox = NULL;
    later_ask(&w->later);
}

static void on_deadline(void *owner)
{
    struct port_wait *w = owner;

    w->too_late = true;
    later_ask(&w->later);
}

static void on_pause_over(void *owner)
{
    struct port_wait *w = owner;

    if (w->sandbox && !w->told)
        try_once(w);
}

static const struct channel_ops channel_ops = {on_frame, on_lost, NULL};
static const struct channel_ops life_ops = {on_life_frame, on_lost, NULL};

struct port_wait *port_wait_start(struct sandbox *s, uint16_t inside_port, int64_t timeout_ms,
                                  void (*done)(void *owner, bool answered), void *owner)
{
    struct port_wait *w = calloc(1, sizeof *w);

    if (!w)
        abort();
    assert(inside_port > 0);
    *w = (struct port_wait){
        .sandbox = s, .port = inside_port, .pause_ms = PAUSE_MS, .done = done, .owner = owner};
    later_init(&w->later, sandbox_base(s), step, w);
    deadline_init(&w->deadline, sandbox_base(s), on_deadline, w);
    deadline_init(&w->pause, sandbox_base(s), on_pause_over, w);
    deadline_set(&w->deadline, timeout_ms);
    w->life = sandbox_open_channel(s, &life_ops, w);
    try_once(w);
    return w;
}

void port_wait_cancel(struct port_wait *w)
{
    port_wait_free(w);
}
