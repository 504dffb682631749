#include "box/box_trail.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "box/box_private.h"

struct trail *box_trail(const struct box *b)
{
    return b->all->spec.trail;
}

struct trail_subject box_subject(const struct box *b)
{
    struct trail_subject s = {0};

    trail_set_owner(&s, b->owner);
    trail_set_sandbox(&s, b->id);
    if (b->line && b->line->is_on && b->line->call)
        snprintf(s.call, sizeof s.call, "%s", b->line->call);
    return s;
}

static json_t *members_of(const struct box *b)
{
    struct trail_subject s = box_subject(b);

    return trail_members(&s);
}

void box_tell_made(const struct box *b, const char *call)
{
    const struct engine_spec *l = &b->all->spec.limits;
    json_t                   *m;

    if (!box_trail(b))
        return;
    m = members_of(b);
    if (call)
        json_object_set_new(m, "call", json_string(call));
    json_object_set_new(m, "image", json_text(b->image, strlen(b->image)));
    json_object_set_new(m, "policy", b->policy ? json_string(policy_name(b->policy)) : json_null());
    json_object_set_new(m, "files", json_boolean(b->files_dir != NULL));
    json_object_set_new(m, "memoryBytes", json_integer(l->memory_bytes));
    json_object_set_new(m, "cpusMilli", json_integer(l->cpus_milli));
    json_object_set_new(m, "pids", json_integer(l->pids));
    json_object_set_new(m, "diskBytes", json_integer(l->disk_bytes));
    trail_write(box_trail(b), TRAIL_SANDBOX_MADE, m, NULL);
}

/* Of what was made ahead and never handed out nothing is told. */
void box_tell_stopped(const struct box *b)
{
    const char *why = b->why ? b->why : b->err.kind ? b->err.msg : "it ended";
    json_t     *m;

    if (!box_trail(b) || !b->is_somebodys)
        return;
    m = members_of(b);
    json_object_del(m, "call");
    json_object_set_new(m, "why", json_text(why, strlen(why)));
    json_object_set_new(m, "ms", json_integer(clock_ms() - b->made_ms));
    trail_write(box_trail(b), TRAIL_SANDBOX_STOPPED, m, NULL);
}
