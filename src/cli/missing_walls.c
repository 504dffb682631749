#include "cli/missing_walls.h"

#include "base/buf.h"
#include "base/log.h"

void missing_walls_log(const json_t *walls)
{
    autobuf struct buf line;
    json_t            *wall;
    size_t             i;

    buf_init(&line, 4096);
    json_array_foreach ((json_t *)walls, i, wall) {
        const char *why = json_string_value(json_object_get(wall, "why"));
        const char *fix = json_string_value(json_object_get(wall, "fix"));
        if (json_is_true(json_object_get(wall, "on")) ||
            json_is_true(json_object_get(wall, "keeps")))
            continue;
        buf_printf(&line, "%s%s (%s%s%s)", line.size ? ", " : "",
                   json_string_value(json_object_get(wall, "name")), why ? why : "",
                   fix ? "; " : "", fix ? fix : "");
    }
    if (line.size > 0)
        log_line(LOG_WARN, "sandbox", "missing walls: %.*s", (int)line.size, (char *)line.data);
}
