#include "engine/run_id.h"

#include <time.h>

#include "base/random.h"

const char *run_id(void)
{
    static char id[33];

    if (!*id)
        random_id(id);
    return id;
}

int64_t run_id_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
