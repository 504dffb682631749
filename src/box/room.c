#include "box/room.h"

#include <string.h>

#include "base/clock.h"
#include "box/box_private.h"
#include "box/pressure.h"

static bool is_live(const struct box *b)
{
    return b->is_somebodys && b->state != BOX_ENDING;
}

static bool is_of(const struct box *b, const char *owner)
{
    return *owner && strcmp(b->owner, owner) == 0;
}

/* Others' may be stopped at any moment. Of his own, only what he need not do anything for. */
static bool will_end(const struct box *b)
{
    return b->one_call || b->stop_wanted || b->err.kind || b->gone;
}

size_t room_used(const struct boxes *all)
{
    return all->count;
}

size_t room_used_by(const struct boxes *all, const char *owner)
{
    const struct box *b;
    size_t            n = 0;

    TAILQ_FOREACH (b, &all->list, entry)
        n += is_live(b) && is_of(b, owner);
    return n;
}

static bool has_staying_only(const struct boxes *all, const char *owner)
{
    const struct box *b;

    TAILQ_FOREACH (b, &all->list, entry)
        if (is_live(b) && is_of(b, owner) && will_end(b))
            return false;
    return true;
}

static bool is_full(const struct boxes *all)
{
    return (int64_t)all->count >= all->spec.max;
}

enum room room_for_anybody(struct boxes *all)
{
    if (is_full(all))
        return ROOM_ALL;
    return pressure_is_out(all->pressure, clock_ms()) ? ROOM_MEMORY : ROOM_IS;
}

/* The usual case is a comparison: the list is looked at only where there may be no room. */
enum room room_for(struct boxes *all, const char *owner)
{
    int64_t each = all->spec.max_each;
    bool    full = is_full(all);
    int64_t own = full || each <= (int64_t)all->count ? (int64_t)room_used_by(all, owner) : 0;

    if (own >= each || (full && own == (int64_t)all->count))
        return has_staying_only(all, owner) ? ROOM_STAYS : ROOM_OWN;
    return room_for_anybody(all);
}

int64_t room_memory(struct boxes *all)
{
    int64_t left = pressure_left(all->pressure, clock_ms());

    return left > 0 ? left : 0;
}
