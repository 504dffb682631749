/* Theory of operation. The stream's callbacks record (input came, its end came, bytes left, output
 * broke) and requests record (finished); `step`, from the top of the loop, decides whether this
 * connection goes on, is flushing its last bytes, or is over. Lines are taken only while there is
 * room for their answers: above the marks they stay in the stream's buffer, and the pipe behind it
 * fills. */
#include "transport/stdio.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/fd.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "loop/stream.h"
#include "mcp/exchange.h"
#include "mcp/rpc.h"
#include "transport/batch.h"

enum {
    LINE_MAX_BYTES = 8 << 20,
    QUEUE_MARK = 1 << 20, /* more waits for the client: no further input, no progress, no logs */
    QUEUE_MAX = 64 << 20, /* more: it does not read at all, and we end */
    GATHER_MAX = 64 << 10,
    OPEN_MAX = 256, /* requests */
    FLUSH_MS = 1000,
    WATCH_MS = 1000,
};

/* One line while it is worked on: a message, or a batch. */
struct stdio_request {
    LIST_ENTRY(stdio_request) entry;
    struct stdio        *t;
    struct mcp_exchange *x; /* NULL: a batch, or not started */
    size_t               requests;
};

struct stdio {
    struct mcp_server  *server;
    struct mcp_session *session; /* NULL once the input is over */
    struct stream      *stream;
    bool                gathers;  /* lines are being taken: answers go out together */
    struct buf          gathered; /* those that are there at once */
    LIST_HEAD(stdio_requests, stdio_request) requests;
    size_t          open;       /* requests in them */
    size_t          scanned;    /* bytes of the buffer that hold no newline */
    bool            skips;      /* the rest of a line that was too long */
    bool            waits;      /* input was left lying: there is no room for answers */
    bool            hung_up;    /* the client has closed our input */
    bool            input_over; /* and all of it was taken, or nobody wants it any more */
    bool            stopping;
    bool            overdue; /* the deadline of the stop has passed */
    bool            broken;  /* the client does not read, and will not */
    bool            told;
    int             in_fd; /* the stream's */
    struct deadline flush, watch, stop_time;
    struct later    step;
    void (*ended)(void *owner);
    void *owner;
};

/* ---- out ---- */

static void give_up(struct stdio *t)
{
    t->broken = true;
    later_ask(&t->step);
}

/* A client that sends many lines at once gets their answers in one write, not in many: that is half
 * the time of a short request. */
static void write_gathered(struct stdio *t)
{
    if (t->gathered.size > 0 && stream_write(t->stream, t->gathered.data, t->gathered.size) < 0)
        give_up(t);
    buf_drop(&t->gathered, t->gathered.size);
}

static void write_line(struct stdio *t, const char *line, size_t size)
{
    if (size > GATHER_MAX - t->gathered.size)
        write_gathered(t);
    if (t->gathers && size <= GATHER_MAX)
        buf_add(&t->gathered, line, size);
    else if (stream_write(t->stream, line, size) < 0)
        give_up(t);
}

static void write_message(struct stdio *t, const json_t *message)
{
    autofree char *text = json_dumps(message, JSON_COMPACT);
    size_t         length;

    if (!text)
        abort();
    length = strlen(text);
    text[length] = '\n'; /* in the place of its end, so that it is one write */
    write_line(t, text, length + 1);
}

static void write_error(struct stdio *t, int code, const char *what)
{
    autojson json_t *message = rpc_error(NULL, code, what, NULL);

    write_message(t, message);
}

/* What may be lost when the client does not keep up. */
static bool is_chatter(const json_t *message)
{
    const char *method = rpc_string(message, "method");

    return method && (strcmp(method, "notifications/progress") == 0 ||
                      strcmp(method, "notifications/message") == 0);
}

static void send_message(struct stdio *t, const json_t *message)
{
    if (stream_queued(t->stream) <= QUEUE_MARK || !is_chatter(message))
        write_message(t, message);
}

/* ---- requests ---- */

static struct stdio_request *request_new(struct stdio *t, size_t requests)
{
    struct stdio_request *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->t = t;
    r->requests = requests;
    LIST_INSERT_HEAD(&t->requests, r, entry);
    t->open += requests;
    return r;
}

static void request_free(struct stdio_request *r)
{
    LIST_REMOVE(r, entry);
    r->t->open -= r->requests;
    free(r);
}

static void on_send(void *owner, json_t *message)
{
    send_message(((struct stdio_request *)owner)->t, message);
}

static void on_finish(void *owner, int status, json_t *message)
{
    struct stdio_request *r = owner;
    struct stdio         *t = r->t;

    (void)status;
    if (message && t->session)
        write_message(t, message);
    request_free(r);
    if (t->waits)
        stream_offer(t->stream);
    if (t->stopping)
        later_ask(&t->step);
}

static void on_session_send(void *owner, json_t *message)
{
    send_message(owner, message);
}

static const struct mcp_exchange_ops exchange_ops = {.send = on_send, .finish = on_finish};
static const struct mcp_session_ops  session_ops = {.send = on_session_send};

/* Why it cannot be taken now, or NULL. What ends a request (a cancellation, an answer) always can.
 */
static const char *objection(const struct stdio *t, size_t requests)
{
    if (requests > 0 && t->stopping)
        return "this server is about to stop";
    if (requests > 0 && t->open > 0 && t->open + requests > OPEN_MAX) /* alone: batch.c bounds it */
        return "too many requests are open: wait for one";
    return NULL;
}

static void refuse(struct stdio *t, const json_t *message, const char *why)
{
    const json_t    *id = json_object_get(message, "id");
    bool             can_echo = json_is_string(id) || json_is_integer(id);
    autojson json_t *answer = rpc_error(can_echo ? id : NULL, RPC_INTERNAL_ERROR, why, NULL);

    write_message(t, answer);
}

static void start(struct stdio *t, json_t *message)
{
    struct mcp_origin     from = {t->server, t->session, ""};
    struct stdio_request *r;
    struct mcp_exchange  *x;
    size_t                requests = rpc_count_requests(message);
    const char           *why = objection(t, requests);

    if (why) {
        refuse(t, message, why);
        return;
    }
    r = request_new(t, requests);
    if (json_is_array(message)) {
        batch_start(&from, message, &exchange_ops, r);
        return;
    }
    x = mcp_exchange_start(&from, message, &exchange_ops, r);
    if (x)
        r->x = x; /* else r is gone */
}

static struct stdio_request *first_that_runs(const struct stdio *t)
{
    struct stdio_request *r;

    LIST_FOREACH (r, &t->requests, entry)
        if (r->x)
            return r;
    return NULL;
}

/* The end of all requests. Those of the session end with it. */
static void cancel_all(struct stdio *t)
{
    struct mcp_session   *session = t->session;
    struct stdio_request *r;

    while ((r = first_that_runs(t))) { /* what one stopped may have ended any other */
        struct mcp_exchange *x = r->x;

        request_free(r);
        mcp_exchange_abandon(x);
    }
    t->session = NULL;
    mcp_session_free(session);
}

/* ---- in ---- */

static const char too_long_text[] = "a message has at most 8 MiB";

/* By bytes, never by the number of requests: what ends one (a cancellation, an answer) is input
 * too. */
static bool is_blocked(const struct stdio *t)
{
    return stream_queued(t->stream) > QUEUE_MARK;
}

static void take_line(struct stdio *t, const char *line, size_t size)
{
    while (size > 0 && (line[size - 1] == '\r' || line[size - 1] == ' '))
        size--;
    if (size == 0)
        return;
    if (size > LINE_MAX_BYTES) {
        write_error(t, RPC_INVALID_REQUEST, too_long_text);
        return;
    }
    autojson json_t *refusal = NULL, *message = rpc_read(line, size, &refusal);
    if (message)
        start(t, message);
    else
        write_message(t, refusal);
}

/* The bytes that were consumed; all that can be, while there is room for answers. */
static size_t take_lines(struct stdio *t, const char *data, size_t size)
{
    size_t used = 0;

    while (!is_blocked(t) && !t->broken) {
        const char *end = memchr(data + used + t->scanned, '\n', size - used - t->scanned);
        if (!end) {
            t->scanned = size - used;
            break;
        }
        if (!t->skips)
            take_line(t, data + used, (size_t)(end - data) - used);
        used = (size_t)(end - data) + 1;
        t->skips = false;
        t->scanned = 0;
    }
    return used;
}

/* What is left holds no newline: the beginning of a line, or at the end of input a last one. */
static void take_rest(struct stdio *t, struct buf *in, bool ended)
{
    bool too_long = in->size > LINE_MAX_BYTES + 1; /* with its CR */

    if (too_long && !t->skips)
        write_error(t, RPC_INVALID_REQUEST, too_long_text);
    t->skips |= too_long;
    if (ended && !t->skips)
        take_line(t, (const char *)in->data, in->size);
    if (ended || t->skips) {
        buf_drop(in, in->size);
        t->scanned = 0;
    }
}

static void note_end(struct stdio *t)
{
    if (!t->hung_up)
        deadline_set(&t->flush, FLUSH_MS);
    t->hung_up = true;
}

/* While input is left lying, nothing is read, and so its end is not seen. */
static void on_watch(void *owner)
{
    struct stdio *t = owner;
    struct pollfd in = {.fd = t->in_fd, .events = POLLRDHUP};

    if (!t->waits)
        return;
    if (poll(&in, 1, 0) > 0)
        note_end(t);
    else
        deadline_set(&t->watch, WATCH_MS);
}

static void on_input(void *owner, struct buf *in, bool ended)
{
    struct stdio *t = owner;

    if (ended)
        note_end(t);
    t->gathers = true;
    if (t->session && in->size > 0)
        buf_drop(in, take_lines(t, (const char *)in->data, in->size));
    t->waits = is_blocked(t);
    if (t->waits)
        deadline_set(&t->watch, WATCH_MS);
    else if (t->session)
        take_rest(t, in, ended);
    t->gathers = false;
    write_gathered(t);
    if (ended && in->size == 0) {
        t->input_over = true;
        later_ask(&t->step);
    }
}

static void on_left(void *owner, size_t bytes)
{
    struct stdio *t = owner;

    (void)bytes;
    if (t->waits)
        stream_offer(t->stream);
    if (t->hung_up || t->input_over) /* it reads on: then it has time */
        deadline_set(&t->flush, FLUSH_MS);
    if (t->input_over)
        later_ask(&t->step);
}

static void on_broken(void *owner, int sys)
{
    struct stdio *t = owner;

    (void)sys;
    give_up(t);
}

static void on_flush_time(void *owner)
{
    give_up(owner); /* what it did not read by now it never will */
}

static void on_stop_time(void *owner)
{
    struct stdio *t = owner;

    t->overdue = true;
    mcp_server_give_up(t->server);
    later_ask(&t->step);
}

static const struct stream_ops stream_ops = {
    .input = on_input, .left = on_left, .broken = on_broken};

/* ---- the whole ---- */

static void step(void *owner)
{
    struct stdio *t = owner;

    if (t->stopping && (LIST_EMPTY(&t->requests) || t->overdue) && !t->input_over) {
        t->input_over = true;
        deadline_set(&t->flush, FLUSH_MS);
    }
    if (t->told || (!t->input_over && !t->broken))
        return;
    if (t->session)
        cancel_all(t);
    if (stream_queued(t->stream) > 0 && !t->broken)
        return;
    t->told = true;
    t->ended(t->owner);
}

struct stdio *stdio_start(struct mcp_server *s, struct event_base *base, int in_fd, int out_fd,
                          void (*ended)(void *owner), void *owner)
{
    struct stdio *t = calloc(1, sizeof *t);

    if (!t)
        abort();
    signal(SIGPIPE, SIG_IGN);
    t->server = s;
    t->ended = ended;
    t->owner = owner;
    t->session = mcp_session_new(s, "", &session_ops, t);
    t->in_fd = in_fd;
    buf_init(&t->gathered, GATHER_MAX);
    deadline_init(&t->flush, base, on_flush_time, t);
    deadline_init(&t->watch, base, on_watch, t);
    deadline_init(&t->stop_time, base, on_stop_time, t);
    later_init(&t->step, base, step, t);
    t->stream = stream_new(base, in_fd, out_fd, LINE_MAX_BYTES + 2, QUEUE_MAX, &stream_ops, t);
    return t;
}

void stdio_stop(struct stdio *t, int64_t deadline_ms)
{
    if (t->stopping)
        return;
    t->stopping = true;
    mcp_server_stop(t->server);
    deadline_set(&t->stop_time, deadline_ms);
    later_ask(&t->step);
}

bool stdio_lost_answers(const struct stdio *t)
{
    return t->broken;
}

void stdio_free(struct stdio *t)
{
    if (!t)
        return;
    if (t->session)
        cancel_all(t);
    stream_free(t->stream);
    buf_done(&t->gathered);
    deadline_done(&t->flush);
    deadline_done(&t->watch);
    deadline_done(&t->stop_time);
    later_done(&t->step);
    free(t);
}
