/* counters - what the kernel counts for the cgroup that this sandbox stands in, as it is shown
 * inside, read-only; zeros where it is not, or is not its own. */
#pragma once

#include "pipe/message.h"

struct message_group_ended counters_read(void);
