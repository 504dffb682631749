/* leader - a process of ours between init and a program, for sandboxes without a cgroup of ours.
 *
 * It is a subreaper: whatever the program starts stays below it, whoever forks twice or makes a
 * session of its own. When the program has exited, the leader ends the rest, tells how it was, and
 * exits. Code has its uid and can kill it; then nobody knows any more whose the orphans are. */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct leader_report {
    int           status; /* of the program, as wait4 has it */
    struct rusage usage;  /* of all that ran, but the peak: that is the program's */
};

/* As fork: returns 0 in the program to be, the leader's pid here, and -1. Why the second fork
 * failed is an errno in report_fd. What the leader tells can be read from *ret_exit_fd when it has
 * exited. */
pid_t leader_fork(int report_fd, int *ret_exit_fd);
pid_t leader_program(int exit_fd, pid_t leader);           /* told first: who is to get signals */
bool  leader_read(int exit_fd, struct leader_report *ret); /* false: it told nothing */

/* Ends the program and all below it; the leader is about to exit when this returns, or was killed.
 */
void leader_end(pid_t leader, int exit_fd);
