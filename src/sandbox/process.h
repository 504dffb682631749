/* process - one program in a sandbox, with a cgroup of its own.
 *
 * Its outputs come as they are read inside, never more than the credit given back by
 * process_consumed. It is over when its main process has ended, everything else in its cgroup has
 * been killed, both outputs have ended, and the cgroup's counters are here: then `done`, once, and
 * the object is gone. It has no deadline: a run does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "pipe/message.h"
#include "sandbox/sandbox.h"

struct process;

struct process_result {
    struct err                 err; /* it could not be started, or the sandbox was lost */
    struct message_exited      exited;
    struct message_group_ended counters;
};

struct process_ops {
    void (*started)(void *owner);
    void (*output)(void *owner, uint8_t stream, const uint8_t *bytes, size_t size);
    void (*exited)(void *owner); /* the main process; leftovers are being killed */
    /* It has exited, and both outputs have ended: only its group's end and counters are still to
     * come. May be NULL. */
    void (*said_all)(void *owner, const struct message_exited *m);
    void (*stdin_room)(void *owner); /* more may be written, or (room SIZE_MAX) nobody reads */
    void (*done)(void *owner, const struct process_result *r);
};

/* m->group is filled in here. */
struct process *process_start(struct sandbox *s, struct message_spawn *m,
                              const struct process_ops *ops, void *owner, struct err *e);
void process_kill(struct process *p); /* it and all its descendants; idempotent; done still comes */
void process_signal(struct process *p, int number); /* to the main process */

/* A program that waits before it runs any code. */
struct process *process_hold(struct sandbox *s, struct message_spawn *m,
                             const struct process_ops *ops, void *owner, struct err *e);
/* No more, and it has another owner from now on; what was told before is not told again. */
void process_release(struct process *p, const struct process_ops *ops, void *owner);
bool process_is_live(const struct process *p); /* nothing says that it has ended, or will */

/* At most process_stdin_room bytes at a time; what comes after its end is dropped. */
size_t process_stdin_room(const struct process *p);
void   process_write_stdin(struct process *p, const uint8_t *bytes, size_t size);
void   process_end_stdin(struct process *p);

void process_consumed(struct process *p, uint8_t stream, size_t bytes);
