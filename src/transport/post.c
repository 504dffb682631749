#include "transport/post.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/fd.h"
#include "mcp/rpc.h"
#include "transport/batch.h"

struct post {
    LIST_ENTRY(post) entry;
    struct posts        *all;
    struct reply        *reply; /* NULL: answered, or the events' sink has it */
    struct http_session *session;
    struct principal    *principal;
    size_t               requests; /* one, those of a batch, or none */
    size_t               size;
    struct mcp_exchange *x;      /* NULL: a batch, or ended */
    struct http_stream  *stream; /* of the session */
    struct sse           own;    /* without a session */
    struct sse          *events; /* either, once it streams; NULL: not yet */
    bool                 starting, finished;
    int                  status; /* finished while it started */
    json_t              *answer; /* or NULL */
};

static struct post *post_new(struct posts *all, struct reply *reply, const json_t *message,
                             size_t size, struct http_session *session, struct principal *principal)
{
    struct post *p = calloc(1, sizeof *p);

    if (!p)
        abort();
    *p = (struct post){
        .all = all,
        .reply = reply,
        .session = session,
        .principal = principal,
        .size = size,
        .requests = rpc_count_requests(message),
    };
    LIST_INSERT_HEAD(&all->open, p, entry);
    principal->requests += p->requests;
    principal->bytes += p->size;
    if (session)
        session->open += p->requests;
    return p;
}

static void post_free(struct post *p)
{
    struct posts *all = p->all;

    LIST_REMOVE(p, entry);
    p->principal->requests -= p->requests;
    p->principal->bytes -= p->size;
    if (p->session)
        p->session->open -= p->requests;
    if (p->events == &p->own)
        sse_done(&p->own);
    json_decref(p->answer);
    free(p);
    if (LIST_EMPTY(&all->open))
        all->emptied(all->owner);
}

/* ---- as a stream ---- */

/* Modern: nobody will ever read the answer. */
static void on_lost(void *owner)
{
    struct post *p = owner;

    if (p->x)
        mcp_exchange_abandon(p->x);
    post_free(p);
}

/* Legacy: the stream waits for the client to come back. */
static void begin_stream(struct post *p)
{
    struct reply *reply = p->reply;

    p->reply = NULL;
    if (p->session) {
        p->stream = http_session_stream(p->session);
        p->events = &p->stream->sse;
        reply_stream(reply, p->events, NULL, NULL);
        http_session_prime(p->session, p->events);
    } else {
        sse_init(&p->own, 0, false);
        p->events = &p->own;
        reply_stream(reply, p->events, on_lost, p);
    }
}

static void send_event(struct post *p, const json_t *message)
{
    autofree char *text = json_dumps(message, JSON_COMPACT);

    if (!text)
        abort();
    if (p->stream)
        http_stream_send(p->stream, text);
    else
        sse_send(p->events, text);
}

static void end_stream(struct post *p)
{
    if (p->stream)
        http_stream_end(p->stream);
    else
        sse_end(p->events);
}

/* ---- the ops ---- */

static void on_send(void *owner, json_t *message)
{
    struct post *p = owner;

    if (!p->events)
        begin_stream(p);
    send_event(p, message);
}

static void on_finish(void *owner, int status, json_t *message)
{
    struct post *p = owner;

    p->x = NULL;
    p->finished = true;
    p->status = status;
    p->answer = json_incref(message);
    if (p->starting)
        return; /* post_start ends it */
    if (message)
        send_event(p, message);
    end_stream(p);
    post_free(p);
}

/* Without an id the client could not come back: then it stays connected. */
static void on_drop_connection(void *owner)
{
    struct post *p = owner;

    if (!p->events)
        begin_stream(p);
    if (p->events->has_id)
        sse_drop(p->events);
}

static const char *on_header(void *owner, const char *name)
{
    struct post *p = owner;

    return p->starting && p->reply ? reply_request_header(p->reply, name) : NULL;
}

static const struct mcp_exchange_ops exchange_ops = {
    .send = on_send,
    .finish = on_finish,
    .drop_connection = on_drop_connection,
    .header = on_header,
};

/* ---- from the beginning to the first answer ---- */

static void answer_at_once(struct post *p)
{
    autofree char *text = p->answer ? json_dumps(p->answer, JSON_COMPACT) : NULL;

    reply_send(p->reply, p->status, "application/json", text);
    p->reply = NULL;
}

/* It finished before anything could wait for it. */
static void conclude(struct post *p)
{
    if (!p->events) {
        answer_at_once(p);
    } else {
        if (p->answer)
            send_event(p, p->answer);
        end_stream(p);
    }
    post_free(p);
}

void post_start(struct posts *all, struct reply *reply, json_t *message, size_t size,
                struct http_session *session, struct principal *principal)
{
    struct post      *p = post_new(all, reply, message, size, session, principal);
    struct mcp_origin from = {all->server, session ? session->mcp : NULL, principal->name, true};
    bool              is_new = session && !mcp_session_is_initialized(session->mcp);
    bool              is_refused;

    p->starting = true;
    if (json_is_array(message))
        batch_start(&from, message, &exchange_ops, p);
    else
        p->x = mcp_exchange_start(&from, message, &exchange_ops, p);
    p->starting = false;
    is_refused = is_new && !mcp_session_is_initialized(session->mcp);
    if (is_new && !is_refused)
        reply_header(reply, "Mcp-Session-Id", session->id);
    if (p->finished)
        conclude(p);
    else if (!p->events)
        begin_stream(p);
    if (is_refused)
        http_session_free(all->sessions, session);
}

static struct post *first_without_session(const struct posts *all)
{
    struct post *p;

    LIST_FOREACH (p, &all->open, entry)
        if (!p->session && p->x)
            return p;
    return NULL;
}

void posts_cancel(struct posts *all)
{
    struct post *p;

    while ((p = first_without_session(all))) { /* what one stopped may have ended any other */
        mcp_exchange_abandon(p->x);
        sse_end(p->events);
        post_free(p);
    }
}
