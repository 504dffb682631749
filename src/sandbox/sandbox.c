#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/reason.h"
#include "base/str.h"
#include "loop/child.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "pipe/link.h"
#include "pipe/message.h"

enum {
    START_MS = 30000,     /* a machine that needs longer is broken */
    LAST_WORDS_MS = 1000, /* of a pipe whose two writers are gone */
    VAIN_MS = 15000,      /* of a client that was not answered for as long as a start may take */
};

struct channel {
    struct channel           *next;
    uint32_t                  id;
    const struct channel_ops *ops;
    void                     *owner;
};

struct sandbox {
    struct event_base   *base;
    const struct engine *engine;
    struct link         *pipe, *control; /* control: NULL where init stands in for a jail */
    struct child jail; /* or what else the engine started; or, when that failed, who removes what it
                          left */
    char                      name[ENGINE_NAME_SIZE]; /* what sweeping finds it by */
    int                       said_fd;                /* what it says when it fails; or -1 */
    struct deadline           deadline;
    struct later              later;
    struct channel           *channels;
    uint32_t                  last_channel;
    uint32_t                  group_ahead; /* a channel to be, whose cgroup is made; or 0 */
    json_t                   *walls;       /* where the engine tells them; else NULL */
    struct egress            *egress;      /* serves the channels that init opens; or NULL */
    const struct sandbox_ops *ops;
    void                     *owner;

    /* facts */
    bool       has_jail; /* else init stands in for it */
    bool       greeted, stop_wanted, jail_exited, has_run;
    bool       control_ended;
    bool       ending;   /* the pipe is closed; only the jail's exit is missing */
    bool       sweeping; /* … and that of the sweep, which began when the jail had failed */
    struct err err;
};

/* ---- the step ---- */

static void tell_channels(struct sandbox *s)
{
    struct err lost = {0};

    err_set(&lost, ERR_UNAVAILABLE, "%s",
            s->err.kind ? s->err.msg : "the sandbox was stopped while this ran");
    while (s->channels) {
        struct channel *c = s->channels;
        s->channels = c->next;
        c->ops->lost(c->owner, &lost);
        free(c);
    }
}

static void begin_end(struct sandbox *s)
{
    s->ending = true;
    link_close(s->pipe);
    link_free(s->control);
    s->control = NULL;
    child_wake(&s->jail); /* one that was stopped would clean up nothing */
    bool is_vain = !s->greeted && s->err.kind == ERR_TIMEOUT && s->engine->end_ms > VAIN_MS;
    deadline_set(&s->deadline, is_vain ? VAIN_MS : s->engine->end_ms);
}

static void finish(struct sandbox *s)
{
    if (s->stop_wanted)
        s->err = (struct err){0};
    s->ops->done(s->owner, &s->err);
    link_free(s->pipe);
    egress_free(s->egress); /* not before all were told: they ask what was refused */
    child_done(&s->jail);
    fd_close(&s->said_fd);
    json_decref(s->walls);
    deadline_done(&s->deadline);
    later_done(&s->later);
    free(s);
}

static void step(void *owner)
{
    struct sandbox *s = owner;

    if (s->control_ended && s->control) { /* if the jail still lives, it hears of it so */
        link_free(s->control);
        s->control = NULL;
    }
    if (s->jail_exited && !s->stop_wanted && !s->err.kind && !s->ending) {
        /* Init went with it: what it wrote last, and how its pipe ended, says more. */
        deadline_set(&s->deadline, LAST_WORDS_MS);
        return;
    }
    bool fails = s->err.kind && !s->stop_wanted && !s->ending;
    if ((s->stop_wanted || s->err.kind) && !s->ending)
        begin_end(s);
    if (s->ending)
        tell_channels(s); /* also those that somebody opened since */
    if (fails && s->ops->failed)
        s->ops->failed(s->owner, &s->err);
    if (s->ending && s->jail_exited && !s->sweeping)
        finish(s);
}

void sandbox_fail(struct sandbox *s, enum err_kind kind, const char *sentence)
{
    if (!s->err.kind)
        err_set(&s->err, kind, "%s", sentence);
    later_ask(&s->later);
}

/* ---- facts ---- */

static bool may_have_left; /* a container; of this process, as all of them have one label */

bool sandbox_may_have_left(void)
{
    return may_have_left;
}

static void on_swept(void *owner, int status)
{
    struct sandbox *s = owner;

    (void)status; /* what could not be removed the next start tries again */
    s->sweeping = false;
    later_ask(&s->later);
}

/* One that failed may not have cleaned up. At once, whatever else the sandbox waits for; and if it
 * cannot be, the next start does it. */
static void sweep(struct sandbox *s)
{
    child_done(&s->jail);
    s->sweeping = s->engine->sweep(s->engine, s->name, &s->jail, s->base, on_swept, s, NULL) == 0;
    if (s->ending)
        deadline_set(&s->deadline, s->engine->end_ms);
}

/* A jail cleans up unless it is killed. A client of a daemon fails with its daemon, or with who
 * watches over its container; one that does not waits until its container is removed. */
static bool leaves_something(const struct sandbox *s, int status)
{
    bool is_container = *s->name;

    return is_container ? status != 0 : WIFSIGNALED(status);
}

static void on_jail_exit(void *owner, int status)
{
    struct sandbox *s = owner;

    s->jail_exited = true; /* its reason came as a frame, or not at all */
    if (leaves_something(s, status)) {
        may_have_left |= *s->name != '\0';
        sweep(s);
    }
    later_ask(&s->later);
}

static void on_deadline(void *owner)
{
    struct sandbox *s = owner;

    if (s->ending)
        child_kill(&s->jail);
    else if (s->jail_exited)
        sandbox_fail(s, ERR_UNAVAILABLE, "the sandbox's jail ended before its time");
    else
        sandbox_fail(s, ERR_TIMEOUT,
                     *s->name ? "the container engine did not start the sandbox within 30 seconds"
                              : "the sandbox did not start within 30 seconds");
}

static void take_error(struct sandbox *s, const struct frame *f)
{
    struct err e = {0};

    message_take_error(f, &e);
    if (!s->greeted && e.sys == MESSAGE_NO_NODE)
        e.kind = ERR_NOT_FOUND;
    if (!s->err.kind)
        s->err = e;
    later_ask(&s->later);
}

static void to_egress(struct sandbox *s, const struct frame *f)
{
    if (s->egress)
        egress_frame(s->egress, f);
    else if (f->type == FRAME_CONNECT)
        sandbox_send(s, FRAME_RESET, f->channel, 0, NULL, 0);
}

static void to_channel(struct sandbox *s, const struct frame *f)
{
    if (s->err.kind)
        return; /* it is over; nothing of it is believed any more */
    if (f->channel & CHANNEL_OF_INIT) {
        to_egress(s, f);
        return;
    }
    for (struct channel *c = s->channels; c; c = c->next)
        if (c->id == f->channel) {
            c->ops->frame(c->owner, f);
            return;
        }
}

static void on_pipe_frame(void *owner, const struct frame *f)
{
    struct sandbox *s = owner;
    struct err      e = {0};

    if (f->type == FRAME_HELLO && !s->greeted && message_check_hello(f, &e) < 0) {
        sandbox_fail(s, ERR_INVALID, e.msg);
    } else if (f->type == FRAME_HELLO && !s->greeted) {
        s->greeted = true;
        deadline_clear(&s->deadline);
        if (s->walls && s->ops->walls)
            s->ops->walls(s->owner, s->walls);
        if (s->ops->ready && !s->err.kind)
            s->ops->ready(s->owner);
    } else if (f->type == FRAME_ERROR && f->channel == 0) {
        take_error(s, f);
    } else if (!s->greeted || f->type == FRAME_HELLO) {
        sandbox_fail(s, ERR_INVALID, "the sandbox did not begin with one hello");
    } else {
        to_channel(s, f);
    }
}

static bool read_reason(struct sandbox *s, char ret[ERR_MSG_MAX])
{
    char    text[4096 + 1];
    ssize_t n = s->said_fd < 0 ? -1 : read(s->said_fd, text, sizeof text - 1);

    if (n <= 0)
        return false;
    text[n] = '\0';
    return reason_find(text, ret, ERR_MSG_MAX);
}

static void on_pipe_end(void *owner, const struct err *e)
{
    struct sandbox *s = owner;
    char            reason[ERR_MSG_MAX];

    if (!s->greeted && read_reason(s, reason))
        sandbox_fail(s, ERR_UNAVAILABLE, reason);
    else
        sandbox_fail(s, ERR_UNAVAILABLE, e->kind ? e->msg : "the sandbox ended");
}

static void take_walls(struct sandbox *s, const struct frame *f)
{
    struct err       e = {0};
    autojson json_t *list = json_parse((const char *)f->payload, f->size, &e);

    if (!json_is_array(list))
        sandbox_fail(s, ERR_INTERNAL, "the jail does not tell its walls");
    else if (s->ops->walls)
        s->ops->walls(s->owner, list);
}

static void on_control_frame(void *owner, const struct frame *f)
{
    if (f->type == FRAME_WALLS)
        take_walls(owner, f);
    if (f->type == FRAME_GROUP_ENDED || f->type == FRAME_ATTACHED || f->type == FRAME_ERROR)
        to_channel(owner, f);
}

/* The jail closes it when it exits, which is awaited anyway. */
static void on_control_end(void *owner, const struct err *e)
{
    struct sandbox *s = owner;

    if (e->kind)
        sandbox_fail(s, e->kind, e->msg);
    s->control_ended = true;
    later_ask(&s->later);
}

static void on_pipe_drained(void *owner)
{
    struct sandbox *s = owner;

    if (s->egress)
        egress_go_on(s->egress);
    for (const struct channel *c = s->channels; c; c = c->next)
        if (c->ops->room)
            c->ops->room(c->owner);
}

static const struct link_ops pipe_ops = {on_pipe_frame, on_pipe_end, on_pipe_drained};
static const struct link_ops control_ops = {on_control_frame, on_control_end, NULL};

bool sandbox_is_well(const struct sandbox *s)
{
    return !s->err.kind && !s->stop_wanted && !s->jail_exited;
}

bool sandbox_has_run(const struct sandbox *s)
{
    return s->has_run;
}

/* ---- channels ---- */

bool sandbox_has_groups(const struct sandbox *s)
{
    return s->has_jail;
}

static void open_channel(struct sandbox *s, uint32_t id, const struct channel_ops *ops, void *owner)
{
    struct channel *c = calloc(1, sizeof *c);

    if (!c)
        abort();
    *c = (struct channel){s->channels, id, ops, owner};
    s->channels = c;
    if (s->ending)
        later_ask(&s->later); /* it is lost already, and must hear so */
}

uint32_t sandbox_open_channel(struct sandbox *s, const struct channel_ops *ops, void *owner)
{
    uint32_t id = ++s->last_channel;

    open_channel(s, id, ops, owner);
    return id;
}

/* Init takes groups in the order in which they were made: so at most one is ahead, and it is the
 * next to be used. */
void sandbox_make_group_ahead(struct sandbox *s)
{
    if (s->group_ahead)
        return;
    s->group_ahead = ++s->last_channel;
    sandbox_send_jail(s, FRAME_GROUP_MAKE, s->group_ahead, NULL, 0);
}

uint32_t sandbox_open_group(struct sandbox *s, const struct channel_ops *ops, void *owner)
{
    uint32_t id;

    sandbox_make_group_ahead(s);
    id = s->group_ahead;
    s->group_ahead = 0;
    open_channel(s, id, ops, owner);
    return id;
}

void sandbox_close_channel(struct sandbox *s, uint32_t channel)
{
    for (struct channel **at = &s->channels; *at; at = &(*at)->next)
        if ((*at)->id == channel) {
            struct channel *c = *at;
            *at = c->next;
            free(c);
            return;
        }
}

void sandbox_send(struct sandbox *s, enum frame_type type, uint32_t channel, uint8_t stream,
                  const void *payload, size_t size)
{
    if (!s->ending)
        link_send(s->pipe, type, channel, stream, payload, size);
}

void sandbox_send_jail(struct sandbox *s, enum frame_type type, uint32_t channel,
                       const void *payload, size_t size)
{
    s->has_run |= type == FRAME_GROUP_RUN;
    if (s->control)
        link_send(s->control, type, channel, 0, payload, size);
    else if (!s->has_jail)
        sandbox_send(s, type, channel, 0, payload, size);
}

void sandbox_wake_jail(struct sandbox *s)
{
    child_wake(&s->jail);
}

bool sandbox_has_room(const struct sandbox *s)
{
    return !s->ending && link_has_room(s->pipe);
}

struct event_base *sandbox_base(const struct sandbox *s)
{
    return s->base;
}

struct egress *sandbox_egress(struct sandbox *s)
{
    return s->egress;
}

static void on_egress_send(void *owner, enum frame_type type, uint32_t channel, uint8_t stream,
                           const void *payload, size_t size)
{
    sandbox_send(owner, type, channel, stream, payload, size);
}

static void on_egress_violated(void *owner, const char *sentence)
{
    sandbox_fail(owner, ERR_INVALID, sentence);
}

static bool on_egress_has_room(void *owner)
{
    return sandbox_has_room(owner);
}

static const struct egress_ops egress_ops = {on_egress_send, on_egress_has_room,
                                             on_egress_violated};

/* ---- the beginning ---- */

static int send_plan(struct sandbox *s, const json_t *plan, struct err *e)
{
    autofree char *text = json_dumps(plan, JSON_COMPACT);

    if (!text || strlen(text) > FRAME_MAX)
        return err_set(e, ERR_LIMIT, "the sandbox plan is too long");
    link_send(s->control, FRAME_PLAN, 0, 0, text, strlen(text));
    return 0;
}

static void send_hello(struct sandbox *s)
{
    autobuf struct buf b;

    buf_init(&b, 16);
    message_pack_hello(&b);
    link_send(s->pipe, FRAME_HELLO, 0, 0, b.data, b.size);
}

/* Files of a plan without a jail. They are small: each fits into its window. */
static void send_file(struct sandbox *s, const char *path, const char *text)
{
    uint32_t                  channel = ++s->last_channel;
    struct message_write_file m = {0644, path};
    autobuf struct buf        b;

    buf_init(&b, 8192);
    if (message_pack_write_file(&b, &m) < 0)
        return;
    sandbox_send(s, FRAME_WRITE_FILE, channel, 0, b.data, b.size);
    sandbox_send(s, FRAME_DATA, channel, STREAM_IN, text, strnlen(text, WINDOW_TO_INIT));
    sandbox_send(s, FRAME_END, channel, STREAM_IN, NULL, 0);
}

static void send_files(struct sandbox *s, const json_t *plan)
{
    size_t  i;
    json_t *entry;

    json_array_foreach (json_object_get(plan, "entries"), i, entry)
        if (strcmp(json_string_value(json_object_get(entry, "kind")), "file") == 0)
            send_file(s, json_string_value(json_object_get(entry, "target")),
                      json_string_value(json_object_get(entry, "text")));
}

struct sandbox *sandbox_start(struct event_base *base, const struct engine *engine,
                              const json_t *plan, const struct egress_spec *network,
                              const struct sandbox_ops *ops, void *owner, struct err *e)
{
    struct sandbox    *s = calloc(1, sizeof *s);
    struct engine_ends ends;

    if (!s)
        abort();
    s->base = base;
    s->engine = engine;
    s->ops = ops;
    s->owner = owner;
    if (engine->start(plan, &ends, &s->jail, base, on_jail_exit, s, e) < 0) {
        free(s);
        return NULL;
    }
    later_init(&s->later, base, step, s);
    deadline_init(&s->deadline, base, on_deadline, s);
    deadline_set(&s->deadline, START_MS);
    s->pipe = link_new(base, ends.from_init_fd, ends.to_init_fd,
                       ends.control_fd < 0 ? PEER_INIT | PEER_JAIL : PEER_INIT, &pipe_ops, s);
    s->has_jail = ends.control_fd >= 0;
    if (s->has_jail)
        s->control = link_new(base, ends.control_fd, ends.control_fd, PEER_JAIL, &control_ops, s);
    if (network)
        s->egress = egress_new(base, network, &egress_ops, s);
    send_hello(s);
    s->said_fd = ends.said_fd;
    str_copy(s->name, sizeof s->name, ends.name);
    s->walls = engine_walls(engine);
    if (!s->control)
        send_files(s, plan);
    else if (send_plan(s, plan, e) < 0)
        sandbox_fail(s, e->kind, e->msg);
    return s;
}

void sandbox_stop(struct sandbox *s)
{
    s->stop_wanted = true;
    later_ask(&s->later);
}
