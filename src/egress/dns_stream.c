#include "egress/dns_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "egress/lookups.h"
#include "loop/later.h"

enum { PREFIX = 2 }; /* a message's length, before it */

struct dns_stream {
    struct egress          *e;
    const struct carry_ops *ops;
    void                   *owner;
    struct later            step;
    struct deadline         deadline; /* of silence */
    struct buf              in, out;  /* queries, and what is left of an answer */
    uint32_t                credit;

    /* facts */
    bool       is_asking, in_ended;
    struct err err;
};

static void on_told(void *owner, uint32_t id, const uint8_t *answer, size_t size)
{
    struct dns_stream *s = owner;
    const uint8_t      prefix[PREFIX] = {(uint8_t)(size >> 8), (uint8_t)size};

    (void)id;
    s->is_asking = false;
    if (size == 0 || buf_add(&s->out, prefix, PREFIX) < 0 || buf_add(&s->out, answer, size) < 0)
        err_set(&s->err, ERR_INVALID, "that was no query");
    later_ask(&s->step);
}

static void flush(struct dns_stream *s)
{
    while (s->out.size > 0 && s->credit > 0 && s->ops->has_room(s->owner)) {
        size_t n = s->out.size < s->credit ? s->out.size : s->credit;
        if (n > FRAME_DATA_MAX)
            n = FRAME_DATA_MAX;
        s->credit -= (uint32_t)n;
        s->ops->data(s->owner, s->out.data, n);
        buf_drop(&s->out, n);
    }
}

/* Takes the next query, if it is there as a whole. */
static bool ask(struct dns_stream *s)
{
    uint8_t message[DNS_MESSAGE_MAX];
    size_t  size = s->in.size < PREFIX ? 0 : (size_t)s->in.data[0] << 8 | s->in.data[1];

    if (s->in.size < PREFIX)
        return false;
    if (size < DNS_HEADER || size > sizeof message) {
        err_set(&s->err, ERR_INVALID, "that was no query");
        return false;
    }
    if (s->in.size < PREFIX + size)
        return false;
    memcpy(message, s->in.data + PREFIX, size);
    buf_drop(&s->in, PREFIX + size);
    s->ops->sent(s->owner, PREFIX + size);
    s->is_asking = true;
    lookups_ask(
        s->e,
        &(struct lookups_query){
            .message = message, .size = size, .most = DNS_ANSWER_MAX, .tell = on_told, .owner = s});
    return true;
}

static void step(void *owner)
{
    struct dns_stream *s = owner;

    do
        flush(s);
    while (!s->err.kind && !s->is_asking && s->out.size == 0 && ask(s));
    if (s->err.kind) {
        s->ops->over(s->owner, &s->err);
    } else if (s->in_ended && !s->is_asking && s->out.size == 0) {
        s->ops->ended(s->owner);
        s->ops->over(s->owner, &s->err);
    }
}

static void on_deadline(void *owner)
{
    struct dns_stream *s = owner;

    err_set(&s->err, ERR_TIMEOUT, "it was silent for too long");
    later_ask(&s->step);
}

struct dns_stream *dns_stream_new(struct egress *e, uint32_t credit, const struct carry_ops *ops,
                                  void *owner)
{
    struct dns_stream *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    *s = (struct dns_stream){.e = e, .ops = ops, .owner = owner, .credit = credit};
    buf_init(&s->in, WINDOW_CONNECTION);
    buf_init(&s->out, PREFIX + DNS_ANSWER_MAX);
    later_init(&s->step, e->base, step, s);
    deadline_init(&s->deadline, e->base, on_deadline, s);
    deadline_set(&s->deadline, e->limits.idle_ms);
    return s;
}

void dns_stream_free(struct dns_stream *s)
{
    if (!s)
        return;
    lookups_cancel(s->e, s);
    later_done(&s->step);
    deadline_done(&s->deadline);
    buf_done(&s->in);
    buf_done(&s->out);
    free(s);
}

int dns_stream_write(struct dns_stream *s, const void *bytes, size_t size)
{
    if (s->in_ended || buf_add(&s->in, bytes, size) < 0)
        return -1;
    deadline_set(&s->deadline, s->e->limits.idle_ms);
    later_ask(&s->step);
    return 0;
}

void dns_stream_end(struct dns_stream *s)
{
    s->in_ended = true;
    later_ask(&s->step);
}

void dns_stream_credit(struct dns_stream *s, uint32_t bytes)
{
    s->credit += bytes;
    later_ask(&s->step);
}

void dns_stream_go_on(struct dns_stream *s)
{
    later_ask(&s->step);
}
