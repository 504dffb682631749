/* sse - one stream of server-sent events, with or without memory.
 *
 * A stream is not a connection. With memory (`keeps`), each event has an id `<stream>-<seq>` and
 * stays in a bounded ring, so that a client whose connection was lost comes back with the last id
 * it saw and gets the rest; while no sink is attached, events only go into the ring. Without memory
 * there are no ids, and events without a sink are lost. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the bytes go: an HTTP response, or a test. */
struct sse_sink {
    void (*write)(void *owner, const void *data, size_t size);
    void (*end)(void *owner); /* the last call; the connection may live on */
};

/* At most so much is kept, whichever is reached first; the newest event always is. */
enum { SSE_EVENTS_MAX = 256, SSE_BYTES_MAX = 1 << 20 };

struct sse_event;

struct sse {
    unsigned               number; /* first part of the ids; unique in its session */
    bool                   keeps;
    bool                   has_id; /* an id went out: the client can come back */
    bool                   ended;
    uint64_t               last; /* the newest event's second part; 0: none yet */
    struct sse_event      *oldest, **newest;
    size_t                 n, bytes; /* kept */
    const struct sse_sink *sink;     /* NULL: nobody is connected */
    void                  *owner;
};

void sse_init(struct sse *s, unsigned number, bool keeps);
void sse_done(struct sse *s); /* ends the sink */

void sse_attach(struct sse *s, const struct sse_sink *sink, void *owner); /* ends another sink */
void sse_detach(struct sse *s); /* the sink is gone; it is not called */
void sse_drop(struct sse *s);   /* ends the sink, not the stream: the client is to come back */

void sse_prime(struct sse *s, unsigned retry_ms); /* an empty event, so that the client has an id */
void sse_send(struct sse *s, const char *json);   /* one line */
void sse_forget(struct sse *s);                   /* all but the newest event */
void sse_end(struct sse *s);
/* Whether all that is newer is still kept: only then may a client go on from there, or it would
 * miss events without knowing. An id of the future is none of ours; 0 comes before the first event.
 */
bool sse_can_replay(const struct sse *s, uint64_t after);
void sse_replay(struct sse *s, uint64_t after); /* what is newer, to the sink; its end too */

int sse_parse_id(const char *text, unsigned *ret_stream, uint64_t *ret_seq); /* -1: none of ours */
