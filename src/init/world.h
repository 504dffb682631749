/* world - what init does to the world around it: starts a process, creates a file, opens the
 * workspace, looks at the disk, opens the doors of egress, connects to servers beside it.
 *
 * The rest of init only moves bytes between its pipe and these descriptors, so that its fuzzer
 * replaces this file and nothing else. */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "pipe/message.h"

struct launched {
    pid_t pid, program; /* who is waited for, and who gets signals: the same without a leader */
    int   in_fd;        /* write end of its stdin, non-blocking; -1 when it has none */
    int   out_fd;       /* read ends, non-blocking */
    int   err_fd;

    /* Without a cgroup: pid is that of a leader (leader.h), which tells the program's end here. */
    bool has_leader;
    int  exit_fd;
};

/* Starts the program in the cgroup of m->group, or where that is 0 below a leader, in a session of
 * its own. Its errors are those of the exec as well: when it returns 0, the program runs. */
int world_launch(const struct message_spawn *m, struct launched *ret, struct err *e);

/* Its leader has exited with *status: that and *usage become the program's own. false: somebody
 * killed the leader; all processes but init were ended. */
bool world_read_exit(int exit_fd, int *status, struct rusage *usage);
void world_end(pid_t leader, int exit_fd); /* the program and all that it started; see leader_end */

/* What the kernel counted for the whole sandbox so far, where it shows it. */
struct message_group_ended world_counters(void);

/* A fresh regular file that nobody else could have put there; world_publish gives it its name, in
 * one step, replacing what has it: a FIFO, a link, an older file. */
int  world_create_file(const char *temp_path, mode_t mode, struct err *e);
int  world_publish(const char *temp_path, const char *path, struct err *e);
void world_discard(const char *temp_path);

int world_open_workspace(struct err *e); /* the directory, for beneath_open */

/* A connection to this port of 127.0.0.1, or ::1, non-blocking and perhaps not made yet: then it
 * becomes writable. e->sys is ECONNREFUSED when nobody listens. */
int world_dial(uint16_t port, bool is_ipv6, struct err *e);

/* No free block or no free inode where code may write. */
bool world_disk_is_full(void);

/* Where the jail's rules send what code connects to and looks up: IPv4 and IPv6, non-blocking. -1
 * for IPv6 where the kernel has none. */
struct doors {
    int connections[2]; /* TCP, listening */
    int lookups[2];     /* UDP */
};

int world_open_doors(struct doors *ret, struct err *e);

/* Where a connection that came in at a door wanted to go. -1: to the door itself, which is
 * nobody's business. */
int world_find_destination(int fd, struct message_connect *ret);
