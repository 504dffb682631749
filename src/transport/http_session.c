#include "transport/http_session.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/random.h"
#include "mcp/revision.h"

enum {
    SESSION_IDLE_MS = 60 * 60 * 1000,
    RETRY_MS = 500, /* after a lost connection */
    STREAM_KEPT_MS = 5 * 60 * 1000,
    ENDED_STREAMS_MAX = 64, /* kept a session, however young */
};

/* ---- streams ---- */

static struct http_stream *stream_new(struct http_session *s, unsigned number)
{
    struct http_stream *t = calloc(1, sizeof *t);

    if (!t)
        abort();
    sse_init(&t->sse, number, true);
    t->session = s;
    t->next = s->streams;
    s->streams = t;
    return t;
}

/* After each change of what it holds. */
static void count(struct http_stream *t)
{
    t->session->kept += t->sse.bytes - t->counted;
    t->session->all->kept += t->sse.bytes - t->counted;
    t->counted = t->sse.bytes;
}

/* Into the row of those that have ended, and out of it. */
static void note_ended(struct http_stream *t)
{
    struct http_sessions *all = t->session->all;

    t->ended_ms = clock_ms();
    t->ended_at = all->ended_last;
    *all->ended_last = t;
    all->ended_last = &t->ended_next;
}

static void unnote_ended(struct http_stream *t)
{
    struct http_sessions *all = t->session->all;

    *t->ended_at = t->ended_next;
    if (t->ended_next)
        t->ended_next->ended_at = t->ended_at;
    else
        all->ended_last = t->ended_at;
}

static void stream_free(struct http_stream *t)
{
    for (struct http_stream **at = &t->session->streams; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    if (t->ended_at)
        unnote_ended(t);
    sse_done(&t->sse);
    count(t);
    free(t);
}

static void forget_streams(struct http_session *s, int64_t now)
{
    size_t ended = 0;

    for (struct http_stream *t = s->streams, *next; t; t = next) {
        next = t->next;
        if (t->ended_ms && (++ended > ENDED_STREAMS_MAX || now - t->ended_ms > STREAM_KEPT_MS))
            stream_free(t);
    }
}

static struct http_stream *oldest_ended(const struct http_session *s,
                                        const struct http_stream  *besides)
{
    struct http_stream *oldest = NULL;

    for (struct http_stream *t = s->streams; t; t = t->next)
        if (t != besides && t->ended_ms && (!oldest || t->ended_ms <= oldest->ended_ms))
            oldest = t; /* of the same moment: the one that began first */
    return oldest;
}

static bool is_too_much(const struct http_session *s)
{
    return s->kept > HTTP_SESSION_KEPT_MAX || s->all->kept > HTTP_SESSIONS_KEPT_MAX;
}

/* The oldest that have ended go while too much is kept; never `last`, which has just grown or
 * ended: its client may be on its way back. */
static void forget_bytes(struct http_session *s, struct http_stream *last)
{
    struct http_stream *t;

    while (s->kept > HTTP_SESSION_KEPT_MAX && (t = oldest_ended(s, last)))
        stream_free(t);
    while (s->all->kept > HTTP_SESSIONS_KEPT_MAX && s->all->ended && s->all->ended != last)
        stream_free(s->all->ended);
    if (!last->ended_ms && is_too_much(s)) {
        sse_forget(&last->sse);
        count(last);
    }
}

struct http_stream *http_session_stream(struct http_session *s)
{
    forget_streams(s, clock_ms());
    return stream_new(s, ++s->last_stream);
}

struct http_stream *http_session_find_stream(struct http_session *s, unsigned number)
{
    for (struct http_stream *t = s->streams; t; t = t->next)
        if (t->sse.number == number)
            return t;
    return NULL;
}

struct http_stream *http_session_standalone(struct http_session *s)
{
    struct http_stream *t = http_session_find_stream(s, 0);

    return t ? t : stream_new(s, 0);
}

void http_stream_send(struct http_stream *t, const char *json)
{
    sse_send(&t->sse, json);
    count(t);
    forget_bytes(t->session, t);
}

void http_stream_end(struct http_stream *t)
{
    sse_end(&t->sse);
    note_ended(t);
    forget_bytes(t->session, t);
}

/* What belongs to no request. Before anyone has asked for it with GET it goes nowhere. */
static void on_send(void *owner, json_t *message)
{
    struct http_stream *t = http_session_find_stream(owner, 0);
    autofree char      *text = t ? json_dumps(message, JSON_COMPACT) : NULL;

    if (text)
        http_stream_send(t, text);
}

static const struct mcp_session_ops session_ops = {.send = on_send};

/* ---- sessions ---- */

static struct http_session **bucket_of(struct http_sessions *all, const char *id)
{
    return &all->buckets[random_id_bucket(id, HTTP_SESSION_BUCKETS)];
}

void http_sessions_init(struct http_sessions *all, struct mcp_server *server)
{
    *all = (struct http_sessions){.server = server};
    all->ended_last = &all->ended;
}

struct http_session *http_session_new(struct http_sessions *all, struct principal *principal)
{
    struct http_session *s, **bucket;

    if (all->n == HTTP_SESSIONS_MAX || principal_has_all_sessions(principal))
        return NULL;
    s = calloc(1, sizeof *s);
    if (!s)
        abort();
    random_id(s->id);
    s->all = all;
    s->principal = principal;
    s->mcp = mcp_session_new(all->server, principal->name, &session_ops, s);
    s->used_ms = clock_ms();
    bucket = bucket_of(all, s->id);
    s->next = *bucket;
    *bucket = s;
    all->n++;
    principal->sessions++;
    return s;
}

struct http_session *http_session_find(struct http_sessions *all, const char *id,
                                       const struct principal *principal)
{
    for (struct http_session *s = *bucket_of(all, id); s; s = s->next)
        if (strcmp(s->id, id) == 0 && s->principal == principal) {
            s->used_ms = clock_ms();
            return s;
        }
    return NULL;
}

void http_session_free(struct http_sessions *all, struct http_session *s)
{
    for (struct http_session **at = bucket_of(all, s->id); *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    all->n--;
    s->principal->sessions--;
    mcp_session_free(s->mcp); /* first: its requests still write their end */
    while (s->streams)
        stream_free(s->streams);
    free(s);
}

static bool is_idle(const struct http_session *s, int64_t now)
{
    if (s->open > 0 || now - s->used_ms < SESSION_IDLE_MS)
        return false;
    for (const struct http_stream *t = s->streams; t; t = t->next)
        if (t->sse.sink)
            return false;
    return true;
}

void http_sessions_expire(struct http_sessions *all)
{
    int64_t now = clock_ms();

    for (size_t i = 0; i < HTTP_SESSION_BUCKETS; i++)
        for (struct http_session *s = all->buckets[i], *next; s; s = next) {
            next = s->next;
            if (is_idle(s, now))
                http_session_free(all, s);
            else
                forget_streams(s, now);
        }
}

void http_sessions_end_gets(struct http_sessions *all)
{
    for (size_t i = 0; i < HTTP_SESSION_BUCKETS; i++)
        for (struct http_session *s = all->buckets[i]; s; s = s->next) {
            struct http_stream *t = http_session_find_stream(s, 0);
            if (t)
                sse_drop(&t->sse);
        }
}

void http_sessions_done(struct http_sessions *all)
{
    for (size_t i = 0; i < HTTP_SESSION_BUCKETS; i++)
        while (all->buckets[i])
            http_session_free(all, all->buckets[i]);
}

void http_session_prime(const struct http_session *s, struct sse *events)
{
    if (mcp_revision_find(mcp_session_version(s->mcp))->has_priming)
        sse_prime(events, RETRY_MS);
}
