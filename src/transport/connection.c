/* Theory of operation. A connection is in one of five states: it collects a head, then a body, then
 * its request is being answered, then either the next head is collected or, when it is to be
 * closed, its last bytes go out and what the client still sends is thrown away for a moment (a
 * close on unread bytes would be a reset, which can overtake the answer). DEAD is for the sweep
 * (connections.c), which alone frees, from the top of the loop.
 *
 * Reading goes through one buffer for all connections. A request that is there as a whole after one
 * read is parsed in its connection's buffer and answered; only one whose body is still to come gets
 * a copy of its head (`pending`). */
#include "transport/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "transport/connection_private.h"

enum {
    INPUT_MAX = HTTP_HEAD_MAX + CONNECTION_BODY_MAX + 2 * CONNECTION_READ,
    PIPELINED_MAX = 64 << 10, /* waits behind the request that is being answered */
    UNREAD_MAX = 8 << 20,     /* more waits, besides one large answer: it does not read */
    OUTPUT_MAX = 128 << 20,   /* with the one answer that may still be added then */
    GATHER_MAX = 64 << 10,    /* answers to one read go out together */
    KEPT_ROOM = 4 << 10,      /* of a buffer, from one request to the next */
    IDLE_MS = 60 * 1000,      /* between requests, or a client that reads nothing */
    LINGER_MS = 2000,
    LINGER_BYTES = 16 << 20,
};

struct pending {
    struct http_head head;
    size_t           size;
    char             text[];
};

static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

static size_t waiting_in(const struct connection *c)
{
    return c->in.size - c->in_from;
}

static void set_due(struct connection *c, int64_t ms)
{
    c->due_ms = clock_ms() + ms;
}

bool connection_is_receiving(const struct connection *c)
{
    return c->state == READ_BODY || (c->state == READ_HEAD && waiting_in(c) > 0);
}

/* ---- what it holds ---- */

static void count(struct connection *c)
{
    size_t in = c->in.room + (c->pending ? c->pending->size : 0);

    c->all->input += in - c->in_counted;
    c->all->output += c->out.room - c->out_counted;
    c->in_counted = in;
    c->out_counted = c->out.room;
}

/* A buffer that holds nothing any more, or too much room for that. */
static void shrink(struct buf *b, size_t *from, size_t kept)
{
    size_t max = b->max;

    buf_drop(b, *from);
    *from = 0;
    if (b->size == 0 && b->room > kept) {
        buf_done(b);
        buf_init(b, max);
    }
}

static void forget_pending(struct connection *c)
{
    free(c->pending);
    c->pending = NULL;
    c->head = NULL;
}

/* ---- its end ---- */

void connection_die(struct connection *c)
{
    if (c->state == DEAD)
        return;
    c->state = DEAD;
    event_del(&c->readable);
    event_del(&c->writable);
    connections_ask_sweep(c);
}

/* The kernel may have no memory for it: then nobody would hear of this connection again. */
static void watch(struct connection *c, struct event *event)
{
    if (event_add(event, NULL) < 0)
        connection_die(c);
}

static void set_deaf(struct connection *c, bool deaf)
{
    if (deaf && !c->deaf)
        event_del(&c->readable);
    if (!deaf && c->deaf)
        watch(c, &c->readable);
    c->deaf = deaf;
}

void connection_free(struct connection *c)
{
    event_del(&c->readable);
    event_del(&c->writable);
    fd_close(&c->fd);
    forget_pending(c);
    buf_done(&c->in);
    buf_done(&c->out);
    count(c);
    free(c);
}

/* ---- out ---- */

/* All that it had to say was said. */
static void on_flushed(struct connection *c)
{
    shrink(&c->out, &c->out_from, c->state == ANSWERING ? 0 : KEPT_ROOM);
    if (c->state == LINGERING && !c->shut) {
        c->shut = true;
        shutdown(c->fd, SHUT_WR);
        set_due(c, LINGER_MS);
    } else if (c->state == ANSWERING) {
        c->due_ms = 0;
    } else if (c->state != LINGERING) {
        set_due(c, IDLE_MS);
    }
    c->all->ops->quiet(c->all->owner);
}

static size_t send_some(struct connection *c, const void *data, size_t size)
{
    ssize_t n = send(c->fd, data, size, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        connection_die(c);
    return n > 0 ? (size_t)n : 0;
}

static void flush(struct connection *c)
{
    size_t waited = connection_unread(c), sent;

    if (c->state == DEAD || waited == 0)
        return;
    sent = send_some(c, c->out.data + c->out_from, waited);
    c->out_from += sent;
    if (c->state == DEAD)
        return;
    if (sent == waited) {
        on_flushed(c);
    } else {
        if (c->out_from > c->out.size / 2)
            shrink(&c->out, &c->out_from, KEPT_ROOM);
        if (sent > 0)
            set_due(c, IDLE_MS); /* it does read */
        watch(c, &c->writable);
    }
    count(c);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    flush(arg);
}

static void queue(struct connection *c, const char *data, size_t size)
{
    if (connection_unread(c) == 0) {
        set_due(c, IDLE_MS);
        c->waits_since_ms = clock_ms();
        c->largest = 0;
    }
    if (size > c->largest)
        c->largest = size;
    if (buf_add(&c->out, data, size) < 0) {
        connection_die(c);
        return;
    }
    count(c);
    connections_bound_output(c->all);
    if (c->state != DEAD && !c->gathers)
        watch(c, &c->writable);
}

void connection_cut_off(struct connection *c)
{
    connection_die(c);
    c->out_from = c->out.size;
    shrink(&c->out, &c->out_from, 0);
    count(c);
}

void connection_write(struct connection *c, const void *data, size_t size)
{
    size_t sent = 0;

    if (c->state == DEAD)
        return;
    if (connection_unread(c) > UNREAD_MAX + c->largest) {
        connection_die(c);
        return;
    }
    if (c->gathers && connection_unread(c) + size > GATHER_MAX)
        flush(c);
    if (connection_unread(c) == 0 && (!c->gathers || size > GATHER_MAX))
        sent = send_some(c, data, size);
    if (sent < size && c->state != DEAD)
        queue(c, (const char *)data + sent, size - sent);
}

/* ---- from request to request ---- */

static void begin_request(struct connection *c)
{
    c->state = READ_HEAD;
    c->scan = (struct http_scan){0};
    c->note = NULL;
    c->request_due_ms = waiting_in(c) > 0 ? clock_ms() + c->all->request_ms : 0;
    if (connection_unread(c) == 0)
        set_due(c, IDLE_MS);
}

/* What waits to be read keeps its time. */
static void begin_answer(struct connection *c)
{
    c->state = ANSWERING;
    c->request_due_ms = 0;
    if (connection_unread(c) == 0)
        c->due_ms = 0;
}

void connection_watch(struct connection *c, void (*gone)(void *arg), void *arg)
{
    c->gone = gone;
    c->gone_arg = arg;
}

void connection_answered(struct connection *c)
{
    c->gone = NULL;
    if (c->state == DEAD)
        return;
    c->all->ops->quiet(c->all->owner);
    if (c->closes) {
        c->state = LINGERING;
        set_deaf(c, false);
        if (connection_unread(c) == 0)
            on_flushed(c);
        return;
    }
    begin_request(c);
    if (!c->gathers)
        connections_ask_sweep(c); /* what was pipelined */
}

static void refuse(struct connection *c, int status, const char *why)
{
    c->closes = true;
    begin_answer(c);
    c->all->ops->refuse(c->all->owner, c, status, why);
    forget_pending(c);
    c->in_from = c->in.size; /* whatever else it sent */
}

void connection_turn_away(struct connection *c, int status, const char *why)
{
    refuse(c, status, why);
    shrink(&c->in, &c->in_from, 0);
    count(c);
}

/* ---- in ---- */

/* The body is to come: its head must not lie in a buffer that moves. */
static void keep_head(struct connection *c)
{
    const char       *text = (char *)c->in.data + c->body_at - c->head_size;
    size_t            size = c->head_size;
    struct http_head *h;
    ptrdiff_t         moved;

    c->pending = malloc(sizeof *c->pending + size);
    if (!c->pending)
        abort();
    memcpy(c->pending->text, text, size);
    c->pending->size = sizeof *c->pending + size;
    c->pending->head = c->all->head;
    h = &c->pending->head;
    moved = c->pending->text - text;
    h->method += moved;
    h->path += moved;
    if (h->authority)
        h->authority += moved;
    for (size_t i = 0; i < h->n; i++) {
        h->fields[i].name += moved;
        h->fields[i].value += moved;
    }
    c->head = h;
    if (h->expects_continue)
        connection_write(c, go_on, strlen(go_on));
}

/* The size of the head that waits, once it is there and can be read; 0: it is not, or was refused.
 */
static size_t read_head(struct connection *c)
{
    struct http_head *h = &c->all->head;
    char             *text = (char *)c->in.data + c->in_from;
    size_t            size = http_head_size(&c->scan, text, waiting_in(c));
    const char       *why = NULL;
    int               status;

    if (size == 0 && waiting_in(c) <= HTTP_HEAD_MAX)
        return 0;
    if (size == 0 || size > HTTP_HEAD_MAX)
        status = 431, why = "the head of a request has at most 64 KiB";
    else
        status = http_head_parse(text, size, h, &why);
    if (status == 0 && h->length > CONNECTION_BODY_MAX)
        status = 413, why = "a body has at most 8 MiB";
    if (status == 0)
        return size;
    refuse(c, status, why);
    return 0;
}

/* The parts of a request. Each returns false when it has to wait for more, or has ended in an
 * answer. */
static bool take_head(struct connection *c)
{
    const struct http_head *h = &c->all->head;
    size_t                  size = read_head(c);
    int64_t                 due_ms = c->request_due_ms;

    if (size == 0)
        return false;
    c->head = h;
    c->head_size = size;
    c->in_from += size;
    /* refused now, its body would be in the way */
    c->closes = !h->keeps_alive || h->is_chunked || h->length > 0;
    begin_answer(c);
    if (!c->all->ops->head(c->all->owner, c)) {
        c->head = NULL;
        return c->state == READ_HEAD;
    }
    c->closes = !h->keeps_alive;
    c->state = READ_BODY;
    c->request_due_ms = due_ms;
    c->chunks = (struct http_chunks){0};
    c->body_at = c->in_from;
    c->body_size = 0;
    return true;
}

/* Whether the chunks are all there. */
static bool take_chunks(struct connection *c)
{
    char   *body = (char *)c->in.data + c->body_at;
    int64_t taken = http_chunks_take(&c->chunks, (char *)c->in.data + c->in_from, waiting_in(c),
                                     body, &c->body_size, CONNECTION_BODY_MAX);

    if (taken < 0) {
        refuse(c, taken == HTTP_CHUNKS_TOO_LARGE ? 413 : 400,
               taken == HTTP_CHUNKS_TOO_LARGE ? "a body has at most 8 MiB"
                                              : "the chunks of the body are none");
        return false;
    }
    c->in_from += (size_t)taken;
    if (c->chunks.state == CHUNK_OVER)
        return true;
    c->in_from = c->in.size = c->body_at + c->body_size; /* all was taken: close the gap */
    return false;
}

static bool take_body(struct connection *c)
{
    if (c->head->is_chunked) {
        if (!take_chunks(c))
            return false;
    } else {
        if (c->head->length > waiting_in(c))
            return false;
        c->body_size = c->head->length;
        c->in_from += c->body_size;
    }
    begin_answer(c);
    c->all->ops->request(c->all->owner, c);
    forget_pending(c);
    return c->state == READ_HEAD;
}

/* Empty lines before a request are forgiven. */
static void skip_empty_lines(struct connection *c)
{
    while (c->scan.at == 0 && waiting_in(c) > 0 &&
           (c->in.data[c->in_from] == '\r' || c->in.data[c->in_from] == '\n'))
        c->in_from++;
}

/* Bytes that were taken go; those of a body in its making must not move. */
static void tidy_input(struct connection *c)
{
    if (c->state == READ_BODY) {
        buf_drop(&c->in, c->body_at);
        c->in_from -= c->body_at;
        c->body_at = 0;
    } else {
        shrink(&c->in, &c->in_from, c->state == ANSWERING ? 0 : KEPT_ROOM);
    }
    count(c);
    connections_bound_input(c);
}

void connection_take_requests(struct connection *c)
{
    bool goes_on = true;

    c->gathers = true;
    while (goes_on && (c->state == READ_HEAD || c->state == READ_BODY)) {
        if (c->state == READ_HEAD)
            skip_empty_lines(c);
        goes_on = c->state == READ_HEAD ? waiting_in(c) > 0 && take_head(c) : take_body(c);
    }
    if (c->state == READ_BODY && !c->pending)
        keep_head(c);
    if (c->state == LINGERING)
        c->in_from = c->in.size;
    tidy_input(c);
    c->gathers = false;
    flush(c);
    if (c->state != DEAD)
        set_deaf(c, c->state == ANSWERING && waiting_in(c) >= PIPELINED_MAX);
}

static void take_input(struct connection *c, size_t size)
{
    if (c->state == LINGERING) {
        c->lingered += size;
        if (c->lingered > LINGER_BYTES) /* then it has to stop, and to read its answer */
            set_deaf(c, true);
        return;
    }
    if (buf_add(&c->in, c->all->read, size) < 0) {
        connection_die(c); /* cannot be: each state stops reading before */
        return;
    }
    if (c->state == READ_HEAD && c->request_due_ms == 0) /* empty lines before it count, too */
        c->request_due_ms = clock_ms() + c->all->request_ms;
    connection_take_requests(c);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct connection *c = arg;
    bool               waits = connections_can_wait(c); /* then only its end is news */
    ssize_t n = recv(fd, c->all->read, waits ? 1 : CONNECTION_READ, waits ? MSG_PEEK : 0);

    (void)what;
    if (n > 0 && waits)
        set_deaf(c, true);
    else if (n > 0)
        take_input(c, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        connection_die(c);
}

struct connection *connection_new(struct connections *all, int fd_take)
{
    struct connection *c = calloc(1, sizeof *c);

    if (!c)
        abort();
    c->all = all;
    c->fd = fd_take;
    buf_init(&c->in, INPUT_MAX);
    buf_init(&c->out, OUTPUT_MAX);
    event_assign(&c->readable, all->base, c->fd, EV_READ | EV_PERSIST, on_readable, c);
    event_assign(&c->writable, all->base, c->fd, EV_WRITE, on_writable, c);
    begin_request(c);
    watch(c, &c->readable);
    return c;
}

/* ---- what the ops ask and tell ---- */

const struct http_head *connection_head(const struct connection *c)
{
    return c->head;
}

char *connection_body(const struct connection *c, size_t *ret_size)
{
    *ret_size = c->body_size;
    return (char *)c->in.data + c->body_at;
}

void connection_set_note(struct connection *c, void *note)
{
    c->note = note;
}

void *connection_note(const struct connection *c)
{
    return c->note;
}

bool connection_closes(const struct connection *c)
{
    return c->closes;
}

void connection_set_closes(struct connection *c)
{
    c->closes = true;
}
