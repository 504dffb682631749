#include "sandbox/result.h"

#include <stdlib.h>

/* The names of those that bound and do not stand; one that keeps and is off was not wanted. */
json_t *result_missing_walls(const json_t *walls)
{
    json_t *names = json_array(), *wall;
    size_t  i;

    json_array_foreach ((json_t *)walls, i, wall)
        if (json_is_false(json_object_get(wall, "on")) &&
            json_is_false(json_object_get(wall, "keeps")) &&
            json_array_append(names, json_object_get(wall, "name")) < 0)
            abort();
    return names;
}

json_t *result_json(const struct run_result *r, const json_t *walls, const json_t *refused)
{
    const struct verdict_facts *f = &r->facts;
    json_t                     *usage =
        json_pack("{s:I, s:I, s:I, s:I}", "wallMs", (json_int_t)r->wall_ms, "cpuMs",
                  (json_int_t)(r->cpu_us / 1000), "peakBytes", (json_int_t)r->peak_bytes,
                  "maxRssBytes", (json_int_t)r->max_rss_bytes);
    json_t *result = json_pack("{s:s, s:s*, s:o, s:o, s:s, s:o, s:o, s:{s:o}}", "verdict",
                               verdict_name(r->verdict), "source", verdict_source(r->verdict, f),
                               "code", f->code < 0 ? json_null() : json_integer(f->code), "signal",
                               f->signal == 0 ? json_null() : json_integer(f->signal), "ended",
                               f->watched ? "sandbox" : "run", "usage", usage, "refused",
                               refused ? json_incref((json_t *)refused) : json_array(), "walls",
                               "missing", walls ? result_missing_walls(walls) : json_null());

    if (!result)
        abort();
    return result;
}
