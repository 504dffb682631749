/* Theory of operation. A client that connects is a visit: a channel on which init is asked to DIAL.
 * Nothing is read from the client before STARTED; from then on a carry moves its bytes, within
 * credit both ways, and the visit turns what it tells into frames, and frames into what it does.
 * The visit is over when both directions ended, or by a reset, which is passed on to the other
 * side.
 *
 * At VISITS_MAX the listener rests: who comes then waits in the kernel's queue, not here. */
#include "sandbox/port.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "egress/carry.h"
#include "loop/deadline.h"
#include "pipe/message.h"

enum {
    VISITS_MAX = 64, /* at once; below init's DIALS_MAX, so that another port has its share */
    AT_A_TIME = 16,  /* accepted, so that nobody else waits for long */
    BACKLOG = 128,
    DIAL_MS = 10000,
    REST_MS = 100,                 /* when this process or the kernel has no room left */
    IDLE_MS = 24 * 60 * 60 * 1000, /* a WebSocket may be silent for long */
    WORTH_A_FRAME = WINDOW_CONNECTION / 4,
};

struct port {
    struct sandbox *sandbox; /* NULL once it is lost */
    uint32_t        life;    /* a channel on which nothing comes but the sandbox's end */
    uint16_t        number, inside;
    int             fd;
    struct event   *acceptable;
    struct deadline rest;
    struct visit   *visits;
    size_t          n_visits;
};

struct visit {
    struct visit   *next;
    struct port    *port;
    uint32_t        id;
    int             fd;    /* of the client, until there is a carry */
    struct carry   *carry; /* or NULL: init has not answered yet */
    struct deadline deadline;
    uint32_t        credit;   /* for DATA towards init */
    uint32_t        received; /* bytes of init not given back yet */
    uint32_t        sent;     /* of those, taken by the client */
    bool            inside_ended;
};

/* ---- the listener ---- */

static void listen_or_rest(struct port *p)
{
    if (!p->acceptable)
        return;
    if (p->n_visits >= VISITS_MAX)
        event_del(p->acceptable);
    else if (event_add(p->acceptable, NULL) < 0)
        deadline_set(&p->rest, REST_MS); /* then again */
}

static void stop_listening(struct port *p)
{
    if (p->acceptable)
        event_free(p->acceptable);
    p->acceptable = NULL;
    deadline_clear(&p->rest);
    fd_close(&p->fd);
}

/* ---- the end of a visit ---- */

/* The client sees a reset, unless both directions had ended. */
static void visit_free(struct visit *v)
{
    struct port   *p = v->port;
    struct visit **at = &p->visits;

    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    p->n_visits--;
    if (p->sandbox)
        sandbox_close_channel(p->sandbox, v->id);
    if (v->fd >= 0)
        fd_reset(&v->fd);
    carry_free(v->carry);
    deadline_done(&v->deadline);
    free(v);
    listen_or_rest(p);
}

static void visit_send(struct visit *v, enum frame_type type, uint8_t stream, const void *payload,
                       size_t size)
{
    if (v->port->sandbox)
        sandbox_send(v->port->sandbox, type, v->id, stream, payload, size);
}

static void visit_reset(struct visit *v)
{
    visit_send(v, FRAME_RESET, 0, NULL, 0);
    visit_free(v);
}

/* ---- the client's side ---- */

static void on_carry_data(void *owner, const uint8_t *bytes, size_t size)
{
    struct visit *v = owner;

    v->credit -= (uint32_t)size;
    visit_send(v, FRAME_DATA, STREAM_IN, bytes, size);
}

static void on_carry_ended(void *owner)
{
    visit_send(owner, FRAME_END, STREAM_IN, NULL, 0);
}

static void on_carry_sent(void *owner, size_t bytes)
{
    struct visit      *v = owner;
    autobuf struct buf b;

    buf_init(&b, 16);
    v->sent += (uint32_t)bytes;
    if (v->sent < WORTH_A_FRAME || v->inside_ended)
        return;
    message_pack_u32(&b, v->sent);
    visit_send(v, FRAME_CREDIT, STREAM_OUT, b.data, b.size);
    v->received -= v->sent;
    v->sent = 0;
}

static bool on_carry_has_room(void *owner)
{
    const struct visit *v = owner;

    return v->port->sandbox && sandbox_has_room(v->port->sandbox);
}

static void on_carry_over(void *owner, const struct err *e)
{
    if (e->kind)
        visit_reset(owner);
    else
        visit_free(owner);
}

static const struct carry_ops carry_ops = {.data = on_carry_data,
                                           .ended = on_carry_ended,
                                           .sent = on_carry_sent,
                                           .has_room = on_carry_has_room,
                                           .over = on_carry_over};

/* ---- init's side: what a hostile one could send is checked here ---- */

static int take_started(struct visit *v)
{
    const struct carry_spec spec = {.credit = WINDOW_CONNECTION, .idle_ms = IDLE_MS};

    if (v->carry)
        return -1;
    deadline_clear(&v->deadline);
    v->carry = carry_adopt(sandbox_base(v->port->sandbox), take_fd(&v->fd), &spec, &carry_ops, v);
    return 0;
}

static int take_data(struct visit *v, const struct frame *f)
{
    if (!v->carry || v->inside_ended || f->stream != STREAM_OUT ||
        f->size > WINDOW_CONNECTION - v->received)
        return -1;
    v->received += (uint32_t)f->size;
    return carry_write(v->carry, f->payload, f->size);
}

static int take_end(struct visit *v, const struct frame *f)
{
    if (!v->carry || v->inside_ended || f->stream != STREAM_OUT)
        return -1;
    v->inside_ended = true;
    carry_end(v->carry);
    return 0;
}

static int take_credit(struct visit *v, const struct frame *f)
{
    uint32_t bytes;

    TRY(message_unpack_u32(f, &bytes, NULL));
    if (!v->carry || f->stream != STREAM_IN || bytes > WINDOW_CONNECTION - v->credit)
        return -1;
    v->credit += bytes;
    carry_credit(v->carry, bytes);
    return 0;
}

static int take(struct visit *v, const struct frame *f)
{
    switch (f->type) {
    case FRAME_STARTED:
        return take_started(v);
    case FRAME_DATA:
        return take_data(v, f);
    case FRAME_END:
        return take_end(v, f);
    case FRAME_CREDIT:
        return take_credit(v, f);
    default:
        return -1;
    }
}

static void on_frame(void *owner, const struct frame *f)
{
    struct visit *v = owner;

    if ((f->type == FRAME_ERROR && !v->carry) || (f->type == FRAME_RESET && v->carry))
        visit_free(v); /* init closed the channel */
    else if (take(v, f) < 0)
        sandbox_fail(v->port->sandbox, ERR_INVALID,
                     "the sandbox sent a frame that fits no connection");
}

static void on_lost(void *owner, const struct err *e)
{
    (void)e;
    visit_free(owner);
}

static void on_room(void *owner)
{
    struct visit *v = owner;

    if (v->carry)
        carry_go_on(v->carry);
}

static const struct channel_ops visit_ops = {on_frame, on_lost, on_room};

/* ---- beginnings ---- */

static void on_visit_deadline(void *owner)
{
    visit_reset(owner);
}

static void begin_visit(struct port *p, int fd)
{
    struct visit      *v = calloc(1, sizeof *v);
    autobuf struct buf b;

    if (!v)
        abort();
    *v = (struct visit){.next = p->visits, .port = p, .fd = fd, .credit = WINDOW_CONNECTION};
    p->visits = v;
    p->n_visits++;
    deadline_init(&v->deadline, sandbox_base(p->sandbox), on_visit_deadline, v);
    deadline_set(&v->deadline, DIAL_MS);
    v->id = sandbox_open_channel(p->sandbox, &visit_ops, v);
    buf_init(&b, 16);
    message_pack_dial(&b, &(struct message_dial){p->inside});
    visit_send(v, FRAME_DIAL, 0, b.data, b.size);
}

static void on_acceptable(evutil_socket_t listener, short what, void *arg)
{
    struct port *p = arg;

    (void)what;
    for (int i = 0; i < AT_A_TIME && p->n_visits < VISITS_MAX; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            begin_visit(p, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            event_del(p->acceptable); /* else the loop would not rest */
            deadline_set(&p->rest, REST_MS);
            return;
        } else if (errno == EAGAIN) {
            break;
        }
    }
    listen_or_rest(p);
}

static void on_rest_over(void *owner)
{
    listen_or_rest(owner);
}

static void on_life_frame(void *owner, const struct frame *f)
{
    struct port *p = owner;

    (void)f;
    sandbox_fail(p->sandbox, ERR_INVALID, "the sandbox sent a frame on a channel without a peer");
}

/* Its visits go with it, those that were not told yet too: they must not outlive `sandbox`. */
static void on_life_lost(void *owner, const struct err *e)
{
    struct port *p = owner;

    (void)e;
    stop_listening(p);
    while (p->visits)
        visit_free(p->visits);
    p->sandbox = NULL;
}

static const struct channel_ops life_ops = {on_life_frame, on_life_lost, NULL};

static int open_listener(uint16_t number, uint16_t *ret_number, struct err *e)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(number),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size = sizeof at;
    autofd int         fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int                on = 1;

    if (fd < 0)
        return err_sys(e, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* old connections may linger */
    if (bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return err_sys(e, "listen on 127.0.0.1:%u", number);
    *ret_number = ntohs(at.sin_port);
    return take_fd(&fd);
}

struct port *port_open(struct sandbox *s, uint16_t host_port, uint16_t inside_port, struct err *e)
{
    uint16_t     number = 0;
    int          fd = open_listener(host_port, &number, e);
    struct port *p;

    assert(inside_port > 0);
    if (fd < 0)
        return NULL;
    p = calloc(1, sizeof *p);
    if (!p)
        abort();
    *p = (struct port){.sandbox = s, .number = number, .inside = inside_port, .fd = fd};
    deadline_init(&p->rest, sandbox_base(s), on_rest_over, p);
    p->acceptable = event_new(sandbox_base(s), fd, EV_READ | EV_PERSIST, on_acceptable, p);
    if (!p->acceptable)
        abort();
    p->life = sandbox_open_channel(s, &life_ops, p);
    listen_or_rest(p);
    return p;
}

uint16_t port_number(const struct port *p)
{
    return p->number;
}

void port_close(struct port *p)
{
    if (!p)
        return;
    stop_listening(p);
    while (p->visits)
        visit_reset(p->visits);
    if (p->sandbox)
        sandbox_close_channel(p->sandbox, p->life);
    deadline_done(&p->rest);
    free(p);
}
