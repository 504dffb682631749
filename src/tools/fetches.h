/* fetches - jerboa-fetch at work for calls: some at a time; the rest wait,
 * and owners take turns (base/turns.h).
 *
 * What a registry says is parsed and unpacked there, so the loop never stands still; what comes
 * back is an answer of at most FETCHES_ANSWER_MAX bytes. */
#pragma once

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mcp/call.h"

enum { FETCHES_ANSWER_MAX = 512 << 10, FETCHES_WORDS_MAX = 6 };

struct fetches;
struct fetch;

struct fetches    *fetches_new(struct event_base *base);
void               fetches_free(struct fetches *f); /* ends what runs; nobody is told */
struct event_base *fetches_base(const struct fetches *f);

/* Words of jerboa-fetch, at most FETCHES_WORDS_MAX, ended by NULL; copied. The call says whose turn
 * it is. `done` is called once, from the loop, unless it was cancelled, and the fetch is gone then:
 * the answer's text, or NULL and why, in one sentence. The limit counts from when its turn comes,
 * which is waited for three minutes at most. */
struct fetch *fetch_start(
    struct fetches *f, const struct mcp_call *call, const char *const *words, int64_t limit_ms,
    void (*done)(void *owner, const char *text, size_t size, const struct err *e), void *owner);
void fetch_cancel(struct fetch *fetch); /* at once; `done` is not called */
