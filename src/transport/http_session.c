#include "transport/http_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "base/random.h"
#include "mcp/revision.h"

enum {
    SESSION_IDLE_MS = 60 * 60 * 1000,
    RETRY_MS = 500, /* after a lost connection */
    STREAM_KEPT_MS = 5 * 60 * 1000,
    ENDED_STREAMS_MAX = 64, /* kept a session, however young */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

/* ---- streams ---- */

static struct http_stream *stream_new(struct http_session *s, unsigned number)
{
    struct http_stream *t = calloc(1, sizeof *t);

    if (!t)
        abort();
    sse_init(&t->sse, number, true);
    t->next = s->streams;
    s->streams = t;
    return t;
}

static void stream_free(struct http_stream *t)
{
    sse_done(&t->sse);
    free(t);
}

static void forget_streams(struct http_session *s, int64_t now)
{
    size_t ended = 0;

    for (struct http_stream **at = &s->streams; *at;) {
        struct http_stream *t = *at;
        bool                old =
            t->ended_ms && (++ended > ENDED_STREAMS_MAX || now - t->ended_ms > STREAM_KEPT_MS);
        if (!old) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        stream_free(t);
    }
}

struct http_stream *http_session_stream(struct http_session *s)
{
    forget_streams(s, now_ms());
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

void http_stream_end(struct http_stream *t)
{
    t->ended_ms = now_ms();
    sse_end(&t->sse);
}

/* What belongs to no request. Before anyone has asked for it with GET it goes nowhere. */
static void on_send(void *owner, json_t *message)
{
    struct http_stream *t = http_session_find_stream(owner, 0);
    autofree char      *text = t ? json_dumps(message, JSON_COMPACT) : NULL;

    if (text)
        sse_send(&t->sse, text);
}

static const struct mcp_session_ops session_ops = {.send = on_send};

/* ---- sessions ---- */

/* Ids are random: some of their digits are as good as a hash. */
static struct http_session **bucket_of(struct http_sessions *all, const char *id)
{
    unsigned digits = 0;

    sscanf(id, "%8x", &digits);
    return &all->buckets[digits % HTTP_SESSION_BUCKETS];
}

struct http_session *http_session_new(struct http_sessions *all, const char *principal)
{
    struct http_session *s, **bucket;

    if (all->n == HTTP_SESSIONS_MAX)
        return NULL;
    s = calloc(1, sizeof *s);
    if (!s)
        abort();
    random_id(s->id);
    s->mcp = mcp_session_new(all->server, principal, &session_ops, s);
    s->used_ms = now_ms();
    bucket = bucket_of(all, s->id);
    s->next = *bucket;
    *bucket = s;
    all->n++;
    return s;
}

struct http_session *http_session_find(struct http_sessions *all, const char *id,
                                       const char *principal)
{
    for (struct http_session *s = *bucket_of(all, id); s; s = s->next)
        if (strcmp(s->id, id) == 0 && strcmp(mcp_session_principal(s->mcp), principal) == 0) {
            s->used_ms = now_ms();
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
    mcp_session_free(s->mcp); /* first: its requests still write their end */
    while (s->streams) {
        struct http_stream *t = s->streams;
        s->streams = t->next;
        stream_free(t);
    }
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
    int64_t now = now_ms();

    for (size_t i = 0; i < HTTP_SESSION_BUCKETS; i++)
        for (struct http_session *s = all->buckets[i], *next; s; s = next) {
            next = s->next;
            if (is_idle(s, now))
                http_session_free(all, s);
            else
                forget_streams(s, now);
        }
}

void http_sessions_quiet(struct http_sessions *all)
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
