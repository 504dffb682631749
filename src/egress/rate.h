/* rate - events a second, with bursts of two seconds' worth. A token an event, filled up with time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rate {
    int64_t per_second;
    int64_t left_milli; /* thousandths of a token */
    int64_t at_ms;      /* when it was filled up */
};

static inline void rate_init(struct rate *r, int64_t per_second, int64_t now_ms)
{
    *r = (struct rate){per_second, 2000 * per_second, now_ms};
}

static inline bool rate_take(struct rate *r, int64_t now_ms)
{
    int64_t most = 2000 * r->per_second;

    r->left_milli += (now_ms - r->at_ms) * r->per_second;
    r->at_ms = now_ms;
    if (r->left_milli > most)
        r->left_milli = most;
    if (r->left_milli < 1000)
        return false;
    r->left_milli -= 1000;
    return true;
}
