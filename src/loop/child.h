/* child - a program of ours that the loop waits for, by pidfd: no SIGCHLD, no pid that is
 * another's.
 *
 * It is started with posix_spawn in a session of its own (a terminal's Ctrl-C is ours to handle)
 * and with exactly the descriptors it is given. It has no deadline: who starts it knows how long it
 * may live, and child_kill ends it. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

enum { CHILD_DIRECTORY = -1 }; /* what is meant is no descriptor, but where it starts */

struct child_fd {
    int from, to; /* rows in ascending order of `to`; the last has from -1 */
};

struct child {
    pid_t         pid; /* 0: reaped */
    int           pid_fd;
    struct event *event;
    void (*exited)(void *owner, int status); /* as waitpid tells; called once */
    void *owner;
};

/* `env`: ended by NULL; NULL: it has none. */
int child_start(struct child *c, struct event_base *base, const char *path, const char *const *argv,
                const char *const *env, const struct child_fd *fds,
                void (*exited)(void *owner, int status), void *owner, struct err *e);
void child_kill(struct child *c);    /* SIGKILL; exited still comes */
void child_wake(struct child *c);    /* if somebody stopped it, it goes on */
void child_end(struct child *c);     /* the same, reaped when it returns: a moment; no exited */
void child_end_all(struct child *c); /* … and all that it started and that is in its group */
/* True: it has ended by itself and is reaped, no exited comes; false: not within that time. */
bool child_wait(struct child *c, int ms);
void child_done(struct child *c);
