#include "transport/sse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_SIZE = 48 }; /* "id: <stream>-<seq>\n" */

struct sse_event {
    struct sse_event *next;
    uint64_t          seq;
    size_t            size;
    char              text[]; /* as it goes out */
};

void sse_init(struct sse *s, unsigned number, bool keeps)
{
    *s = (struct sse){.number = number, .keeps = keeps};
    s->newest = &s->oldest;
}

/* ---- the sink ---- */

static void write_out(struct sse *s, const char *data, size_t size)
{
    if (s->sink)
        s->sink->write(s->owner, data, size);
}

void sse_detach(struct sse *s)
{
    s->sink = NULL;
}

void sse_drop(struct sse *s)
{
    const struct sse_sink *sink = s->sink;

    s->sink = NULL;
    if (sink)
        sink->end(s->owner);
}

void sse_attach(struct sse *s, const struct sse_sink *sink, void *owner)
{
    sse_drop(s);
    s->sink = sink;
    s->owner = owner;
}

/* ---- the ring ---- */

static void forget_oldest(struct sse *s)
{
    struct sse_event *e = s->oldest;

    s->oldest = e->next;
    if (!s->oldest)
        s->newest = &s->oldest;
    s->n--;
    s->bytes -= e->size;
    free(e);
}

static void keep_take(struct sse *s, struct sse_event *e)
{
    *s->newest = e;
    s->newest = &e->next;
    s->n++;
    s->bytes += e->size;
    while (s->n > SSE_EVENTS_MAX || (s->n > 1 && s->bytes > SSE_BYTES_MAX))
        forget_oldest(s);
}

void sse_forget(struct sse *s)
{
    while (s->n > 1)
        forget_oldest(s);
}

void sse_done(struct sse *s)
{
    sse_drop(s);
    while (s->oldest)
        forget_oldest(s);
}

/* ---- events ---- */

static struct sse_event *event_new(const struct sse *s, const char *json)
{
    size_t            room = ID_SIZE + strlen(json) + sizeof "data: \n\n";
    struct sse_event *e = malloc(sizeof *e + room);
    int               n;

    if (!e)
        abort();
    if (s->keeps)
        n = snprintf(e->text, room, "id: %u-%" PRIu64 "\ndata: %s\n\n", s->number, s->last, json);
    else
        n = snprintf(e->text, room, "data: %s\n\n", json);
    e->next = NULL;
    e->seq = s->last;
    e->size = (size_t)n;
    return e;
}

void sse_send(struct sse *s, const char *json)
{
    struct sse_event *e;

    if (s->ended || (!s->keeps && !s->sink))
        return;
    s->last++;
    e = event_new(s, json);
    write_out(s, e->text, e->size);
    if (s->keeps) {
        s->has_id = true;
        keep_take(s, e);
    } else {
        free(e);
    }
}

void sse_prime(struct sse *s, unsigned retry_ms)
{
    char text[ID_SIZE + 64];
    int  n = snprintf(text, sizeof text, "id: %u-%" PRIu64 "\nretry: %u\ndata: \n\n", s->number,
                      s->last, retry_ms);

    s->has_id = true;
    write_out(s, text, (size_t)n);
}

void sse_end(struct sse *s)
{
    s->ended = true;
    sse_drop(s);
}

bool sse_can_replay(const struct sse *s, uint64_t after)
{
    return after == s->last || (after < s->last && s->oldest && s->oldest->seq <= after + 1);
}

void sse_replay(struct sse *s, uint64_t after)
{
    for (const struct sse_event *e = s->oldest; e; e = e->next)
        if (e->seq > after)
            write_out(s, e->text, e->size);
    if (s->ended)
        sse_drop(s);
}

int sse_parse_id(const char *text, unsigned *ret_stream, uint64_t *ret_seq)
{
    static const char digits[] = "0123456789";
    size_t            stream = strspn(text, digits);
    size_t            seq = text[stream] == '-' ? strspn(text + stream + 1, digits) : 0;

    /* Short enough that neither number can overflow. */
    if (stream == 0 || stream > 9 || seq == 0 || seq > 18 || text[stream + 1 + seq] != '\0')
        return -1;
    *ret_stream = (unsigned)strtoul(text, NULL, 10);
    *ret_seq = strtoull(text + stream + 1, NULL, 10);
    return 0;
}
