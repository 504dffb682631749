/* meter - bytes a second, shared by the connections of one sandbox. Who gets nothing waits until it
 * is filled again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct meter {
    int64_t per_second; /* 0: no limit */
    int64_t left;
};

/* How many of `wanted` bytes may pass now. */
static inline size_t meter_take(struct meter *m, size_t wanted)
{
    if (!m || m->per_second == 0)
        return wanted;
    if (m->left <= 0)
        return 0;
    if ((int64_t)wanted > m->left)
        wanted = (size_t)m->left;
    m->left -= (int64_t)wanted;
    return wanted;
}

static inline void meter_give_back(struct meter *m, size_t bytes)
{
    if (m && m->per_second > 0)
        m->left += (int64_t)bytes;
}

/* Nobody saves up for longer than a second. */
static inline void meter_fill(struct meter *m, int64_t ms)
{
    m->left += m->per_second * ms / 1000;
    if (m->left > m->per_second)
        m->left = m->per_second;
}
