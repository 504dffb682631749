/* fuzz-server - the server's end of a sandbox, fed with what a hostile init might send.
 *
 * Everything above the jail is real: sandbox, link, upload, process, run. The engine is
 * one of this file: instead of starting a jail it hands back socketpairs, and a
 * `struct child` without a process, whose exit this file tells. The jail is trusted; an honest one
 * is played: it answers GROUP_END with GROUP_ENDED and exits when its control socket is closed.
 *
 * The first byte of an input says what the server's user does meanwhile (enum below); the rest are
 * the bytes of init. One run is under way: two files, the second longer than the window, then a
 * program that is given more stdin than its window. Or, instead, everything that looks inside.
 *
 * Asserted: however init behaves, the run and the sandbox end, each once; nothing stays on the
 * loop; and what the server sends are frames that a server may send, DATA within the window. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/engine.h"
#include "pipe/message.h"
#include "sandbox/download.h"
#include "sandbox/listing.h"
#include "sandbox/port.h"
#include "sandbox/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    CANCEL = 1,    /* the run is cancelled in the middle */
    STOP = 2,      /* the sandbox is stopped in the middle */
    JAIL_DIES = 4, /* the jail is gone in the middle */
    HOLD_BACK = 8, /* the reader of the output gives credit back only every other time */
    AT_ONCE = 16,  /* init's bytes come as they fit, not a frame at a time */
    LOOK = 32,  /* instead of the run: a wait for a port (channels 1 and 2), a file (3), a listing
                   (4) */
    VISIT = 64, /* with LOOK: also a port (5) and a client of it (6) */
};

enum { STDIN_SIZE = 3 * WINDOW_TO_INIT / 2, CHANNELS = 256, DOWNLOAD_MAX = 2000 };

/* One input's worth of everything. */
static struct play {
    struct event_base *base;
    int                init_fd, control_fd; /* init's and the jail's ends */
    struct buf         from_server, to_jail;
    int64_t            window[CHANNELS]; /* bytes the server may still send */
    void (*jail_exited)(void *owner, int status);
    void           *jail_owner;
    struct sandbox *sandbox;
    struct run     *run;
    unsigned        flags;
    size_t          stdin_left, outputs;
    int             runs_done, sandboxes_done, successes;

    /* LOOK */
    struct port_wait *wait; /* these three until they are done */
    struct download  *download;
    struct listing   *listing;
    struct port      *port;
    int               client_fd;
} play;

/* ---- the jail and the receiving half of init ---- */

static int start(const json_t *plan, struct engine_ends *ret, struct child *jail,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e)
{
    int pipe_ends[2], control_ends[2];

    (void)plan;
    (void)base;
    (void)e;
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pipe_ends) == 0);
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, control_ends) == 0);
    play.init_fd = pipe_ends[1];
    play.control_fd = control_ends[1];
    play.jail_exited = exited;
    play.jail_owner = owner;
    *jail = (struct child){.pid_fd = -1};
    *ret = (struct engine_ends){pipe_ends[0], fcntl(pipe_ends[0], F_DUPFD_CLOEXEC, 3),
                                control_ends[0], -1, ""};
    return 0;
}

static int sweep(const struct engine *engine, const char *name, struct child *child,
                 struct event_base *base, void (*exited)(void *owner, int status), void *owner,
                 struct err *e)
{
    (void)engine, (void)name, (void)child, (void)base, (void)exited, (void)owner;
    return err_set(e, ERR_UNAVAILABLE, "no jail is killed here");
}

static const struct engine played = {
    .name = "played", .end_ms = 5000, .start = start, .sweep = sweep};

static void exit_jail(void)
{
    void (*exited)(void *owner, int status) = play.jail_exited;

    play.jail_exited = NULL;
    if (exited)
        exited(play.jail_owner, 0);
}

static void answer_group_end(uint32_t channel)
{
    struct message_group_ended m = {.cpu_us = 1};
    autobuf struct buf         payload, b;

    buf_init(&payload, 64);
    buf_init(&b, 128);
    message_pack_group_ended(&payload, &m);
    frame_add(&b, &(struct frame){FRAME_GROUP_ENDED, 0, channel, payload.data, payload.size});
    fd_write_all(play.control_fd, b.data, b.size); /* the server may have closed it since */
}

static void tell_walls(void)
{
    static const char  list[] = "[{\"name\":\"landlock\",\"on\":false}]";
    autobuf struct buf b;

    buf_init(&b, 128);
    frame_add(&b, &(struct frame){FRAME_WALLS, 0, 0, (const uint8_t *)list, sizeof list - 1});
    fd_write_all(play.control_fd, b.data, b.size);
}

static void heard_by_jail(const struct frame *f)
{
    if (f->type == FRAME_GROUP_END || f->type == FRAME_GROUP_DROP)
        answer_group_end(f->channel);
    else if (f->type == FRAME_PLAN)
        tell_walls();
    else
        assert(f->type == FRAME_GROUP_MAKE || f->type == FRAME_GROUP_RUN);
}

static void heard_by_init(const struct frame *f)
{
    assert(f->channel < CHANNELS);
    if (f->type == FRAME_SPAWN || f->type == FRAME_WRITE_FILE)
        play.window[f->channel] += WINDOW_TO_INIT;
    if (f->type == FRAME_DIAL)
        play.window[f->channel] += WINDOW_CONNECTION;
    if (f->type == FRAME_DATA) {
        play.window[f->channel] -= (int64_t)f->size;
        assert(f->stream == STREAM_IN && play.window[f->channel] >= 0);
    }
}

/* Takes what the server sent; false when it closed its end. */
static bool hear(int fd, struct buf *b, void (*heard)(const struct frame *f))
{
    struct frame f;
    ssize_t      n;
    long         parsed;

    while ((n = read(fd, buf_reserve(b, 1 << 16), 1 << 16)) > 0) {
        b->size += (size_t)n;
        while ((parsed = frame_parse(b->data, b->size, PEER_SERVER, &f, NULL)) > 0) {
            heard(&f);
            buf_drop(b, (size_t)parsed);
        }
        assert(parsed == 0);
    }
    return n < 0;
}

static void turn(void)
{
    for (int i = 0; i < 3; i++) {
        event_base_loop(play.base, EVLOOP_NONBLOCK);
        if (play.sandboxes_done)
            continue;
        hear(play.init_fd, &play.from_server, heard_by_init);
        if (!hear(play.control_fd, &play.to_jail, heard_by_jail))
            exit_jail();
    }
}

/* Credit that init gives is noted as it is sent, for heard_by_init; only what the server accepts
 * counts, which is never more than the window. */
static void note_credit(const uint8_t *data, size_t size)
{
    struct frame f;
    uint32_t     bytes;
    long         n;

    for (; (n = frame_parse(data, size, PEER_INIT, &f, NULL)) > 0; data += n, size -= (size_t)n)
        if (f.type == FRAME_CREDIT && f.channel < CHANNELS &&
            message_unpack_u32(&f, &bytes, NULL) == 0 && bytes <= WINDOW_CONNECTION)
            play.window[f.channel] += bytes;
}

/* ---- the user of the run ---- */

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    static volatile uint8_t sink;

    (void)owner;
    assert(size > 0 && stream != STREAM_IN);
    sink = bytes[size - 1];
    (void)sink;
    if (!(play.flags & HOLD_BACK) || play.outputs++ % 2)
        process_consumed(run_process(play.run), stream, size);
}

static void on_stdin_room(void *owner)
{
    static const uint8_t bytes[STDIN_SIZE];
    struct process      *p = run_process(play.run);
    size_t               room = process_stdin_room(p);

    (void)owner;
    if (room == SIZE_MAX || !play.stdin_left)
        return;
    if (room > play.stdin_left)
        room = play.stdin_left;
    process_write_stdin(p, bytes, room);
    play.stdin_left -= room;
    if (!play.stdin_left)
        process_end_stdin(p);
}

static void on_run_done(void *owner, const struct run_result *r)
{
    int status = verdict_exit_status(r->verdict, &r->facts);

    (void)owner;
    assert(verdict_name(r->verdict) && status >= -1 && status <= 255);
    assert(!play.successes || r->verdict == VERDICT_OK || r->verdict == VERDICT_SANDBOX_LOST);
    play.run = NULL;
    play.runs_done++;
}

static void on_succeeded(void *owner)
{
    (void)owner;
    assert(play.run && ++play.successes == 1);
}

static void on_sandbox_done(void *owner, const struct err *e)
{
    (void)owner;
    (void)e;
    play.sandbox = NULL;
    play.sandboxes_done++;
}

static void on_walls(void *owner, const json_t *list)
{
    (void)owner;
    assert(json_array_size(list) == 1 && play.sandbox);
}

static const struct sandbox_ops sandbox_ops = {on_sandbox_done, on_walls};
static const struct run_ops     run_ops = {on_output, on_stdin_room, on_run_done, on_succeeded};

/* ---- the user who looks inside ---- */

static void on_waited(void *owner, bool answered)
{
    (void)owner;
    (void)answered;
    assert(play.wait);
    play.wait = NULL;
}

static void on_downloaded(void *owner, const struct err *e, const uint8_t *bytes, size_t size,
                          uint64_t whole)
{
    static volatile uint8_t sink;

    (void)owner;
    assert(play.download && size <= DOWNLOAD_MAX && (e->kind ? size == 0 : whole >= size));
    if (size > 0)
        sink = bytes[size - 1];
    (void)sink;
    play.download = NULL;
}

static void on_listed(void *owner, const struct err *e, const struct listing_row *rows, size_t n,
                      bool cut)
{
    (void)owner;
    (void)cut;
    assert(play.listing && n <= 4 && (!e->kind || n == 0));
    for (size_t i = 0; i < n; i++)
        assert(rows[i].path[0] && rows[i].path[0] != '/' && rows[i].kind < ROW_KINDS);
    play.listing = NULL;
}

static int connect_to_port(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(port_number(play.port)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert(connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && write(fd, "hello", 5) == 5);
    /* so that millions of them leave nothing with the kernel */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    return fd;
}

static void look_inside(void)
{
    static const struct listing_bounds bounds = {.entries = 4, .depth = 3, .ms = 60000};

    play.runs_done = 1; /* there is none */
    play.wait = port_wait_start(play.sandbox, 3000, 60000, on_waited, NULL);
    play.download = download_start(play.sandbox, "a/b", DOWNLOAD_MAX, on_downloaded, NULL);
    play.listing = listing_start(play.sandbox, "a", &bounds, on_listed, NULL);
    if (!(play.flags & VISIT))
        return;
    play.port = port_open(play.sandbox, 0, 3000, NULL);
    assert(play.port);
    play.client_fd = connect_to_port();
}

static void give_up(void)
{
    if (play.wait)
        port_wait_cancel(play.wait);
    if (play.download)
        download_cancel(play.download);
    if (play.listing)
        listing_cancel(play.listing);
    port_close(play.port);
    play.wait = NULL;
    play.download = NULL;
    play.listing = NULL;
    play.port = NULL;
}

static void set_the_scene(void)
{
    static const uint8_t         bytes[WINDOW_TO_INIT + 1000];
    static const struct run_file files[] = {{"/a", bytes, 10}, {"/b", bytes, sizeof bytes}};
    static const char           *argv[] = {"/p", NULL}, *env[] = {NULL};
    static const struct run_spec spec = {
        .files = files, .n_files = 2, .argv = argv, .env = env, .cwd = "/", .has_stdin = true};
    autojson json_t *plan = json_object();

    play.sandbox = sandbox_start(play.base, &played, plan, NULL, &sandbox_ops, NULL, NULL);
    if (play.flags & LOOK)
        look_inside();
    else
        play.run = run_start(play.sandbox, &spec, &run_ops, NULL);
    turn();
}

static void interfere(void)
{
    if (play.flags & CANCEL && play.run)
        run_end(play.run, VERDICT_CANCELLED);
    if (play.flags & CANCEL && play.flags & LOOK)
        give_up();
    if (play.flags & STOP && play.sandbox)
        sandbox_stop(play.sandbox);
    if (play.flags & JAIL_DIES)
        exit_jail();
}

static size_t piece_of(const uint8_t *data, size_t size)
{
    struct frame f;
    long         n = frame_parse(data, size, PEER_INIT | PEER_JAIL, &f, NULL);

    return n > 0 && !(play.flags & AT_ONCE) ? (size_t)n : size;
}

/* What init says; the interference comes between two pieces, past the middle. */
static void send_bytes(const uint8_t *data, size_t size)
{
    bool   interfered = false;
    size_t sent = 0;

    while (sent < size && !play.sandboxes_done) {
        ssize_t n = write(play.init_fd, data + sent, piece_of(data + sent, size - sent));

        if (n < 0 && errno != EAGAIN)
            return; /* the server has had enough of it */
        sent += n > 0 ? (size_t)n : 0;
        if (sent >= size / 2 && !interfered) {
            interfered = true;
            interfere();
        }
        turn();
    }
}

/* libFuzzer looks at its clock by SIGALRM, which would fail the one call that waits: `connect`. */
static void go_on_after_alarms(void)
{
    struct sigaction a;

    sigaction(SIGALRM, NULL, &a);
    a.sa_flags |= SA_RESTART;
    sigaction(SIGALRM, &a, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_base *base;

    if (size == 0)
        return 0;
    base = play.base ? play.base : event_base_new();
    signal(SIGPIPE, SIG_IGN);
    go_on_after_alarms();
    play = (struct play){.base = base, .flags = data[0], .stdin_left = STDIN_SIZE, .client_fd = -1};
    buf_init(&play.from_server, 4 << 20);
    buf_init(&play.to_jail, 4 << 20);
    data++, size--;
    set_the_scene();
    note_credit(data, size);
    send_bytes(data, size);
    turn();
    shutdown(play.init_fd, SHUT_WR); /* init is gone, whatever it has not said */
    for (int i = 0; i < 20 && !(play.runs_done && play.sandboxes_done); i++)
        turn();
    assert(play.runs_done == 1 && play.sandboxes_done == 1);
    assert(!play.wait && !play.download && !play.listing);
    port_close(play.port); /* its sandbox is gone */
    fd_close(&play.client_fd);
    assert(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    close(play.init_fd);
    close(play.control_fd);
    buf_done(&play.from_server);
    buf_done(&play.to_jail);
    return 0;
}
