/* handover - descriptors of a cgroup on their way from the jail to who enters it. Number 0 is
 * init's own group; the others are those of runs and are received by init (see init/world.c). The
 * other way goes one message, before init runs: the sandbox's disk (see attach.h). */
#pragma once

#include <stdint.h>

/* The number travels even when there are no descriptors, so that nobody waits for them. */
int handover_send(int socket_fd, uint32_t group, const int *fds, int n);

/* Waits for group 0; returns how many descriptors came, -1 when the other end is gone. */
int handover_receive(int socket_fd, int *ret_fds);
