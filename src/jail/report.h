/* report - the jail's own frames: an error in place of init's hello, the walls, a run's counters.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "pipe/message.h"

/* 0, or -1 with errno: the server waits for each of them, so whoever cannot tell it has to end. */
int report_error(int fd, uint32_t channel, const struct err *e);
int report_walls(int fd, const json_t *walls);
int report_attached(int fd, uint32_t channel);
int report_group_ended(int fd, uint32_t group, const struct message_group_ended *m);
