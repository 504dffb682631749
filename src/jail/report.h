/* report - the jail's own frames: an error in place of init's hello, a run's counters. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "pipe/message.h"

void report_error(int fd, uint32_t channel, const struct err *e);
void report_group_ended(int fd, uint32_t group, const struct message_group_ended *m);
