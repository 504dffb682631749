#include "box/relief.h"

#include <stdio.h>

#include "base/clock.h"
#include "box/box_private.h"
#include "box/pressure.h"

enum { LOOK_MS = 1000 };

static void let_go(struct boxes *all)
{
    struct box *b;

    TAILQ_FOREACH (b, &all->list, entry)
        if (b->shelf)
            box_stop(b, "memory is short");
        else
            box_rest(b);
}

static void tell(const struct boxes *all, int64_t left)
{
    char sentence[160];

    snprintf(sentence, sizeof sentence,
             "memory is short, %lld MiB are left: no sandbox and no Node is kept ahead until there "
             "is more",
             (long long)(left >> 20));
    if (all->ops->note)
        all->ops->note(all->owner, sentence);
}

static void look(void *owner)
{
    struct boxes *all = owner;
    int64_t       now = clock_ms();
    bool          was_short = all->is_short;

    all->is_short = pressure_is_short(all->pressure, now);
    if (all->is_short) /* again and again: what was being started is ready now */
        let_go(all);
    if (all->is_short && !was_short)
        tell(all, pressure_left(all->pressure, now));
    if (!all->is_short && was_short)
        boxes_fill_soon(all);
    deadline_set(&all->relief, LOOK_MS);
}

void relief_init(struct boxes *all)
{
    all->pressure = pressure_new("/proc", all->spec.reserve_bytes);
    deadline_init(&all->relief, all->spec.base, look, all);
    if (pressure_floor(all->pressure) == 0)
        return;
    all->is_short = pressure_is_short(all->pressure, clock_ms());
    deadline_set(&all->relief, LOOK_MS);
}

void relief_done(struct boxes *all)
{
    deadline_done(&all->relief);
    pressure_free(all->pressure);
}
