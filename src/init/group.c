/* Theory of operation. A group needs no making and no watching: the container's own limits hold.
 * Its end is answered when nothing of it is left. The kernel counts for the whole sandbox, so what
 * is told is what was counted since the last group ended; of two that run beside each other, the
 * first to end has it. */
#include "init/group.h"

#include "init/channel.h"
#include "init/outbox.h"
#include "init/world.h"
#include "pipe/message.h"

static bool                       enabled;
static struct message_group_ended before;

void group_enable(void)
{
    enabled = true;
    before = world_counters();
}

bool group_takes(enum frame_type type)
{
    return enabled && (type == FRAME_GROUP_MAKE || type == FRAME_GROUP_RUN ||
                       type == FRAME_GROUP_END || type == FRAME_GROUP_DROP);
}

static void tell_end(uint32_t channel, bool is_alone)
{
    struct message_group_ended now = world_counters(),
                               m = {.oom_kills = now.oom_kills - before.oom_kills,
                                    .forks_refused = now.forks_refused - before.forks_refused,
                                    .peak_bytes = now.peak_bytes,
                                    .watched = !is_alone};
    autobuf struct buf b;

    before = now;
    buf_init(&b, 64);
    if (message_pack_group_ended(&b, &m) == 0)
        outbox_send(FRAME_GROUP_ENDED, channel, 0, b.data, b.size);
}

void group_handle(const struct frame *f)
{
    if (f->type == FRAME_GROUP_END || f->type == FRAME_GROUP_DROP)
        tell_end(f->channel, channel_end_group(f->channel));
}
