/* Theory of operation. evhttp knows three ends of a request: its answer was written (on_complete,
 * after which evhttp frees the request), its connection broke while we were still writing (closecb,
 * and the request is then ours to free), or we end the connection ourselves (closecb, and evhttp
 * frees both). All three only record and put the reply on the `over` list; `sweep`, from the top of
 * the loop, tells the owner and frees. */
#include "transport/reply.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

enum {
    INPUT_MAX = (8 << 20) + (128 << 10), /* a body of 8 MiB and its head */
    PIPELINED_MAX = 64 << 10,            /* waits behind the request that is being answered */
    UNREAD_MAX = 8 << 20,                /* waits for a client that does not read */
};

struct reply {
    struct reply          *next, **at; /* in open or over */
    struct replies        *all;
    struct evhttp_request *req;    /* NULL: not to be touched any more */
    bool                   orphan; /* over: req is ours to free */
    bool                   streams;
    bool                   condemned; /* the client does not read: to be closed by the sweep */
    struct sse            *events;    /* NULL: it is no stream, or its stream has ended */
    void (*lost)(void *owner);
    void *owner;
};

static const struct timeval idle_time = {.tv_sec = REPLY_IDLE_S};

static void link_to(struct reply *r, struct reply **list)
{
    r->next = *list;
    r->at = list;
    if (r->next)
        r->next->at = &r->next;
    *list = r;
}

static void unlink_from(struct reply *r)
{
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
}

static struct bufferevent *bufferevent_of(const struct reply *r)
{
    return evhttp_connection_get_bufferevent(evhttp_request_get_connection(r->req));
}

/* ---- its end ---- */

static void retire(struct reply *r)
{
    unlink_from(r);
    link_to(r, &r->all->over);
    later_ask(&r->all->sweep);
}

static void on_closed(struct evhttp_connection *connection, void *arg)
{
    struct reply *r = arg;

    (void)connection;
    r->orphan = !evhttp_request_get_connection(r->req);
    if (!r->orphan)
        r->req = NULL;
    retire(r);
}

static void on_complete(struct evhttp_request *req, void *arg)
{
    struct reply *r = arg;

    evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
    bufferevent_setwatermark(bufferevent_of(r), EV_READ, 0, 0);
    if (r->streams)
        bufferevent_set_timeouts(bufferevent_of(r), &idle_time, &idle_time);
    r->req = NULL;
    retire(r);
}

static void close_condemned(struct replies *all)
{
    for (struct reply *r = all->open, *next; r; r = next) {
        next = r->next;
        if (r->condemned)
            evhttp_connection_free(evhttp_request_get_connection(r->req)); /* calls on_closed */
    }
}

static void reply_free(struct reply *r)
{
    unlink_from(r);
    r->all->n--;
    if (r->orphan)
        evhttp_request_free(r->req);
    free(r);
}

static void tell_lost(struct reply *r)
{
    sse_detach(r->events);
    r->events = NULL;
    if (r->lost)
        r->lost(r->owner);
}

static void sweep(void *owner)
{
    struct replies *all = owner;

    close_condemned(all);
    while (all->over) {
        struct reply *r = all->over;
        if (r->events)
            tell_lost(r);
        reply_free(r);
    }
    if (all->n == 0)
        all->emptied(all->owner);
}

/* ---- all of them ---- */

void replies_init(struct replies *all, struct event_base *base, void (*emptied)(void *owner),
                  void *owner)
{
    *all = (struct replies){.emptied = emptied, .owner = owner, .scratch = evbuffer_new()};
    later_init(&all->sweep, base, sweep, all);
    if (!all->scratch)
        abort();
}

void replies_done(struct replies *all)
{
    while (all->over)
        reply_free(all->over);
    while (all->open)
        reply_free(all->open);
    later_done(&all->sweep);
    evbuffer_free(all->scratch);
}

/* evhttp bounds head and body, but not the line that tells the size of a chunk; and it would never
 * look again at a connection whose input is full. */
static void on_input_changed(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg)
{
    (void)info;
    if (evbuffer_get_length(in) > INPUT_MAX)
        shutdown(bufferevent_getfd(arg), SHUT_RDWR);
}

struct bufferevent *reply_bufferevent(struct event_base *base, void *arg)
{
    struct bufferevent *b = bufferevent_socket_new(base, -1, 0);

    (void)arg;
    if (b && !evbuffer_add_cb(bufferevent_get_input(b), on_input_changed, b))
        abort();
    return b;
}

/* ---- one ---- */

struct reply *reply_new(struct replies *all, struct evhttp_request *req)
{
    struct reply *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->all = all;
    r->req = req;
    all->n++;
    link_to(r, &all->open);
    evhttp_request_set_on_complete_cb(req, on_complete, r);
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_closed, r);
    bufferevent_setwatermark(bufferevent_of(r), EV_READ, 0, PIPELINED_MAX);
    return r;
}

const char *reply_request_header(const struct reply *r, const char *name)
{
    const char *value = evhttp_find_header(evhttp_request_get_input_headers(r->req), name);

    return value ? value + strspn(value, " \t") : NULL; /* libevent leaves a leading tab */
}

void reply_header(struct reply *r, const char *name, const char *value)
{
    evhttp_add_header(evhttp_request_get_output_headers(r->req), name, value);
}

void reply_send(struct reply *r, int status, const char *type, const char *body)
{
    if (body && evhttp_request_get_command(r->req) != EVHTTP_REQ_HEAD) {
        reply_header(r, "Content-Type", type);
        evbuffer_add(r->all->scratch, body, strlen(body));
    }
    evhttp_send_reply(r->req, status, NULL, r->all->scratch);
}

/* Streams stay for long, and there are thousands: of their headers only Connection is needed, which
 * evhttp looks at again at the end. */
static void forget_headers(struct reply *r)
{
    struct evkeyvalq *in = evhttp_request_get_input_headers(r->req);
    const char       *connection = evhttp_find_header(in, "Connection");
    autofree char    *kept = connection ? strdup(connection) : NULL;

    evhttp_clear_headers(evhttp_request_get_output_headers(r->req));
    evhttp_clear_headers(in);
    if (kept)
        evhttp_add_header(in, "Connection", kept);
}

static bool is_writable(const struct reply *r)
{
    return r->req && !r->orphan && !r->condemned;
}

static void write_to(struct reply *r, const void *data, size_t size)
{
    if (!is_writable(r))
        return;
    if (evbuffer_get_length(bufferevent_get_output(bufferevent_of(r))) > UNREAD_MAX) {
        r->condemned = true;
        later_ask(&r->all->sweep);
        return;
    }
    evbuffer_add(r->all->scratch, data, size);
    evhttp_send_reply_chunk(r->req, r->all->scratch);
}

static void on_event(void *owner, const void *data, size_t size)
{
    write_to(owner, data, size);
}

static void on_events_end(void *owner)
{
    struct reply *r = owner;

    r->events = NULL;
    if (is_writable(r))
        evhttp_send_reply_end(r->req);
}

static const struct sse_sink sink = {.write = on_event, .end = on_events_end};

void reply_stream(struct reply *r, struct sse *events, void (*lost)(void *owner), void *owner)
{
    r->streams = true;
    r->events = events;
    r->lost = lost;
    r->owner = owner;
    reply_header(r, "Content-Type", "text/event-stream");
    reply_header(r, "Cache-Control", "no-cache");
    reply_header(r, "X-Accel-Buffering", "no");
    bufferevent_set_timeouts(bufferevent_of(r), NULL, &idle_time); /* it may be silent for days */
    evhttp_send_reply_start(r->req, 200, NULL);
    forget_headers(r);
    sse_attach(events, &sink, r);
}

void replies_heartbeat(struct replies *all)
{
    static const char comment[] = ":\n\n";

    for (struct reply *r = all->open; r; r = r->next)
        if (r->events)
            write_to(r, comment, strlen(comment));
}
