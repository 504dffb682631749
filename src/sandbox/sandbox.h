/* sandbox - one live sandbox, seen from the server: a jail process, a pipe to init, a control
 * socket.
 *
 * What is open inside (a process, a file on its way in) is a channel; its object registers here and
 * gets the frames of its number. The sandbox frees itself after `done`, which is called exactly
 * once: after sandbox_stop, or by itself when it is lost. By then its jail has been waited for, so
 * nothing of it is left on the machine. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/json.h"
#include "egress/egress.h"
#include "engine/engine.h"
#include "pipe/frame.h"

struct sandbox;

struct sandbox_ops {
    /* ERR_NONE after sandbox_stop; else why it ended: a step that failed, a lost init. */
    void (*done)(void *owner, const struct err *e);
    /* Which walls stand, once, before anything runs: a list of {name, what, keeps, on, why, fix}
     * (see jail/walls.h), borrowed. May be NULL. */
    void (*walls)(void *owner, const json_t *list);
    /* Init answers: all steps of the jail went well. Once; may be NULL. */
    void (*ready)(void *owner);
    /* It ends without having been stopped, and why; its channels were told. Once; `done` still
     * comes, after all that may take long. May be NULL. */
    void (*failed)(void *owner, const struct err *e);
};

/* The plan is sent to the jail and not kept. Frames may be sent at once: they wait in the pipe.
 * `network`: what its connections may do; NULL: each is reset. */
struct sandbox *sandbox_start(struct event_base *base, const struct engine *engine,
                              const json_t *plan, const struct egress_spec *network,
                              const struct sandbox_ops *ops, void *owner, struct err *e);
void            sandbox_stop(struct sandbox *s); /* idempotent; done still comes */
/* Its init broke the rules or does not answer: the sandbox ends, and everybody in it is told. */
void sandbox_fail(struct sandbox *s, enum err_kind kind, const char *sentence);

bool sandbox_is_well(const struct sandbox *s); /* nothing says that it is ending */
bool sandbox_has_run(const struct sandbox *s); /* a program that did more than to wait */

struct channel_ops {
    void (*frame)(void *owner, const struct frame *f); /* from init, and what the jail answers */
    void (*lost)(void *owner, const struct err *e);    /* the sandbox ended first; called once */
    void (*room)(void *owner); /* there is room again for DATA; opens and closes nothing; or NULL */
};

/* Numbers are never used twice. Closing inside one of the ops is fine. */
uint32_t sandbox_open_channel(struct sandbox *s, const struct channel_ops *ops, void *owner);
/* The same with a cgroup of its number, for a process. One is made ahead, if somebody did that. */
uint32_t sandbox_open_group(struct sandbox *s, const struct channel_ops *ops, void *owner);
bool     sandbox_has_groups(
        const struct sandbox *s); /* false: a process has a leader instead (init/leader.h) */
void sandbox_make_group_ahead(struct sandbox *s);
void sandbox_close_channel(struct sandbox *s, uint32_t channel);

void sandbox_send(struct sandbox *s, enum frame_type type, uint32_t channel, uint8_t stream,
                  const void *payload, size_t size); /* to init */
void sandbox_send_jail(struct sandbox *s, enum frame_type type, uint32_t channel,
                       const void *payload, size_t size);

void               sandbox_wake_jail(struct sandbox *s); /* one that somebody stopped goes on */
bool               sandbox_has_room(const struct sandbox *s); /* see pipe/link.h */
struct event_base *sandbox_base(const struct sandbox *s);
struct egress     *sandbox_egress(struct sandbox *s); /* NULL: it has none, or it is ending */

/* A client that kept a container failed: something may be left, or may even yet come to be, that
 * was not swept. */
bool sandbox_may_have_left(void);
