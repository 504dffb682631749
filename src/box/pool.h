/* pool - how many sandboxes to make ahead, and of which kind.
 *
 * It counts and decides; boxes make them and hand them out. A kind is what cannot be changed any
 * more in a sandbox that stands. The kind that most will ask for is known from the start and never
 * falls below a minimum; the others are known from the first who asked on. Each kind keeps as many
 * as were missing: one more for each that had to be made while somebody waited, one fewer for each
 * minute in which there was always one left or nobody asked, or at whose end none can be made.
 * Where there is no room, what nobody asked for in the last minute makes some for what somebody
 * did. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POOL_STARTING_MAX = 2, POOL_LOWER_MS = 60000, POOL_KINDS_MAX = 16 };

struct pool;

struct pool_kind {
    const char *image;
    const char *files_dir; /* or NULL */
};

struct shelf { /* those of one kind; belongs to the pool */
    struct shelf    *next;
    struct pool_kind kind;
    size_t           spares;   /* that nobody has yet, ready or not */
    size_t           starting; /* of these, not ready */
    size_t           target, floor;
    size_t           least; /* that were ready since target was looked at, which was at … */
    int64_t          looked_ms, asked_ms, retry_ms;
    unsigned         failures; /* since the last one that became ready */
};

/* At most `max` of all kinds together, at least `min` of the first; NULL: there is no such. */
struct pool *pool_new(size_t min, size_t max, const struct pool_kind *first);
void         pool_free(struct pool *p);

/* Somebody asks for one of that kind. NULL: there are too many kinds. */
struct shelf *pool_shelf(struct pool *p, const struct pool_kind *kind, int64_t now_ms);

/* What happened. */
void pool_missed(struct pool *p, struct shelf *s); /* none was ready */
void pool_began(struct shelf *s);
void pool_became_ready(struct shelf *s);
void pool_left(struct shelf *s, bool was_ready); /* taken, or not wanted any more */
void pool_failed(struct shelf *s, int64_t now_ms);
void pool_works(struct pool *p); /* one was made otherwise: so what failed may be tried at once */

/* What to do. */
struct shelf *pool_wanting(struct pool *p, int64_t now_ms); /* one more of these; or NULL */
/* Of some kind that can be made fewer than half are ready. */
bool pool_is_low(const struct pool *p, int64_t now_ms);
/* How long to wait before that is asked again: until the first retry, at most most_ms. */
int64_t       pool_pause_ms(const struct pool *p, int64_t now_ms, int64_t most_ms);
struct shelf *pool_take_surplus(struct pool *p, int64_t now_ms); /* one fewer of these; or NULL */
void          pool_lower(struct pool *p, int64_t now_ms);        /* now and then */
