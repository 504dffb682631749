/* Theory of operation. The loop moves bytes between three pairs: our stdin and the program's, its
 * outputs and ours. Credit goes back to the sandbox only for bytes that were really written, so a
 * reader that stops stops the script, and nothing piles up here. Callbacks record facts; `step`
 * ends the loop when all of them are in. */
#include "cli/session.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include "base/str.h"
#include "cli/missing_walls.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "loop/stream.h"
#include "sandbox/attach.h"
#include "sandbox/sandbox.h"
#include "sandbox/send_tree.h"
#include "sandbox/twin.h"

enum { STDIN_BUFFER = 1 << 16, OUT_QUEUE = 2 * WINDOW_FROM_INIT, LINGER_MS = 2000, LOOK_MS = 5 };

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof forwarded / sizeof forwarded[0] };

struct session {
    struct event_base     *base;
    struct sandbox        *sandbox;
    struct run            *run;
    const struct run_spec *spec;
    struct run_result      result;
    struct resolver       *resolver;
    json_t                *refused, *connections;
    struct deadline        linger; /* until what the script sent has left */
    int                    lingered_ms;
    json_t                *walls; /* as the sandbox told them */
    struct stream         *in, *out[STREAM_COUNT];
    struct later           later;
    struct event          *signals[SIGNALS];
    const json_t          *plan;
    const char            *layer_dir; /* or NULL */
    size_t                 put;       /* how much of what goes in before the script */
    struct files          *files;     /* with a twin: the watch over what it is one of */
    struct twin           *twin;
    char                   files_note[ERR_MSG_MAX];
    bool                   run_done, sandbox_done;
    int                    std_flags[3]; /* of our standard descriptors, as they came */
    int                    stdout_sys;   /* why nobody takes its output, or 0 */
    int                    signal_seen;
};

/* ---- facts ---- */

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct session *s = owner;

    if (stream_write(s->out[stream], bytes, size) < 0)
        abort(); /* the queue is larger than the window */
}

static void consumed(struct session *s, uint8_t stream, size_t bytes)
{
    if (s->run && run_process(s->run))
        process_consumed(run_process(s->run), stream, bytes);
    later_ask(&s->later);
}

static void on_stdout_left(void *owner, size_t bytes)
{
    consumed(owner, STREAM_OUT, bytes);
}

static void on_stderr_left(void *owner, size_t bytes)
{
    consumed(owner, STREAM_ERR, bytes);
}

/* As a program in a pipeline would: its reader is gone, so it ends. */
static void on_stdout_broken(void *owner, int sys)
{
    struct session *s = owner;

    s->stdout_sys = sys;
    if (s->run)
        run_end(s->run, VERDICT_CANCELLED);
}

static void on_no_input(void *owner, struct buf *in, bool ended)
{
    (void)owner;
    (void)ended;
    buf_drop(in, in->size);
}

static void on_stdin(void *owner, struct buf *in, bool ended)
{
    struct session *s = owner;
    struct process *p = s->run ? run_process(s->run) : NULL;

    if (!p)
        return; /* offered again when it runs: see on_stdin_room */
    size_t room = process_stdin_room(p), n = in->size < room ? in->size : room;
    process_write_stdin(p, in->data, n);
    buf_drop(in, n);
    if (ended && in->size == 0)
        process_end_stdin(p);
}

static void on_stdin_room(void *owner)
{
    struct session *s = owner;

    if (s->in)
        stream_offer(s->in);
}

/* The directory of this machine that a plan has as an entry of this kind; NULL: none. */
static const char *source_of(const struct session *s, const char *kind)
{
    return json_string_value(json_object_get(engine_entry(s->plan, kind), "source"));
}

/* A script may write, close and exit: its bytes are still to be carried out. */
static void stop_when_sent(void *owner)
{
    struct session *s = owner;
    struct egress  *e = s->sandbox_done ? NULL : sandbox_egress(s->sandbox);

    if (s->sandbox_done)
        return;
    if (e && egress_is_sending(e) && s->lingered_ms < LINGER_MS) {
        s->lingered_ms += LOOK_MS;
        deadline_set(&s->linger, LOOK_MS);
        return;
    }
    sandbox_stop(s->sandbox);
}

static void end_run(struct session *s)
{
    s->run_done = true;
    if (!s->sandbox_done)
        stop_when_sent(s);
    later_ask(&s->later); /* a sandbox whose jail died was done first */
}

static void on_fetched(void *owner, const struct err *e)
{
    struct session *s = owner;

    str_copy(s->files_note, sizeof s->files_note, e->msg);
    end_run(s);
}

static void on_run_done(void *owner, const struct run_result *r)
{
    struct session *s = owner;

    s->run = NULL;
    s->result = *r;
    if (!s->sandbox_done && sandbox_egress(s->sandbox)) {
        s->refused = egress_take_refused(sandbox_egress(s->sandbox));
        s->connections = egress_log(sandbox_egress(s->sandbox));
    }
    if (s->twin && !r->facts.lost)
        twin_fetch(s->twin, s->files, source_of(s, "twin"), 0, on_fetched, s);
    else
        end_run(s);
}

static void on_sandbox_done(void *owner, const struct err *e)
{
    struct session *s = owner;

    s->sandbox_done = true;
    twin_free(s->twin);
    s->twin = NULL;
    if (e->kind)
        s->result.err = *e; /* it knows better than the run why both ended */
    later_ask(&s->later);
}

static void on_walls(void *owner, const json_t *list)
{
    struct session *s = owner;

    json_decref(s->walls);
    s->walls = json_incref((json_t *)list);
    missing_walls_log(list);
}

/* The first one is the script's to handle; the second ends it. */
static void on_signal(evutil_socket_t number, short what, void *arg)
{
    struct session *s = arg;
    struct process *p = s->run ? run_process(s->run) : NULL;

    (void)what;
    if (p && !s->signal_seen)
        process_signal(p, (int)number);
    else if (s->run)
        run_end(s->run, VERDICT_CANCELLED);
    else if (!s->sandbox_done)
        sandbox_stop(s->sandbox); /* what is on its way in or out ends with it */
    s->signal_seen = (int)number;
}

/* ---- what goes in before the script ---- */

static void prepare(struct session *s);

/* It is there, or nothing runs. */
static void on_put(void *owner, const struct err *e)
{
    struct session *s = owner;
    enum verdict    verdict = s->signal_seen ? VERDICT_CANCELLED : VERDICT_SANDBOX_LOST;
    struct err      lost = *e;

    if (s->sandbox_done && !lost.kind)
        err_set(&lost, ERR_UNAVAILABLE, "the sandbox ended");
    if (!lost.kind)
        prepare(s);
    else
        on_run_done(s, &(struct run_result){
                           .verdict = verdict, .err = lost, .facts = {.lost = true, .code = -1}});
}

static bool put_layer(struct session *s)
{
    if (s->layer_dir)
        sandbox_attach(s->sandbox, s->layer_dir, on_put, s);
    return s->layer_dir;
}

static bool put_dir(struct session *s)
{
    struct send_tree tree = {source_of(s, "sent"), "/workspace/dir", -1, "--dir"};

    if (tree.dir)
        send_tree_start(s->sandbox, &tree, on_put, s);
    return tree.dir;
}

static bool put_files(struct session *s)
{
    if (s->files)
        twin_send(s->twin, s->files, source_of(s, "twin"), on_put, s);
    return s->files;
}

static bool (*const puts_in_order[])(struct session *s) = {put_layer, put_dir, put_files};
enum { PUTS = sizeof puts_in_order / sizeof puts_in_order[0] };

static const struct run_ops run_ops;

static void prepare(struct session *s)
{
    while (s->put < PUTS)
        if (puts_in_order[s->put++](s))
            return;
    s->run = run_start(s->sandbox, s->spec, &run_ops, s);
    if (s->signal_seen) /* while there was no script to handle it */
        run_end(s->run, VERDICT_CANCELLED);
}

/* A directory that the sandbox cannot be shown. */
static int open_twin(struct session *s, struct err *e)
{
    const json_t *entry = engine_entry(s->plan, "twin");

    if (!entry)
        return 0;
    s->files = files_open(s->base, source_of(s, "twin"), NULL, NULL, NULL, e);
    if (!s->files)
        return -1;
    s->twin = twin_new(s->sandbox, json_integer_value(json_object_get(s->plan, "diskBytes")));
    return 0;
}

static void step(void *owner)
{
    struct session *s = owner;

    if (s->run_done && s->sandbox_done && stream_queued(s->out[STREAM_OUT]) == 0 &&
        stream_queued(s->out[STREAM_ERR]) == 0)
        event_base_loopbreak(s->base);
}

/* ---- beginning and end ---- */

static const struct stream_ops  stdin_ops = {.input = on_stdin};
static const struct stream_ops  stdout_ops = {on_no_input, on_stdout_left, on_stdout_broken};
static const struct stream_ops  stderr_ops = {on_no_input, on_stderr_left, NULL};
static const struct run_ops     run_ops = {on_output, on_stdin_room, on_run_done};
static const struct sandbox_ops sandbox_ops = {on_sandbox_done, on_walls};

static void open_streams(struct session *s, bool wants_stdin)
{
    int in_fd = wants_stdin ? stream_reopen(0, O_RDONLY) : -1;

    for (int fd = 0; fd < 3; fd++)
        s->std_flags[fd] = fcntl(fd, F_GETFL);
    if (in_fd >= 0)
        s->in = stream_new(s->base, in_fd, -1, STDIN_BUFFER, 0, &stdin_ops, s);
    s->out[STREAM_OUT] =
        stream_new(s->base, -1, stream_reopen(1, O_WRONLY), 0, OUT_QUEUE, &stdout_ops, s);
    s->out[STREAM_ERR] =
        stream_new(s->base, -1, stream_reopen(2, O_WRONLY), 0, OUT_QUEUE, &stderr_ops, s);
}

static void watch_signals(struct session *s)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        s->signals[i] = evsignal_new(s->base, forwarded[i], on_signal, s);
        evsignal_add(s->signals[i], NULL);
    }
}

/* A socket cannot be opened anew, so O_NONBLOCK was set on what others share with us, and what we
 * print ourselves after the run would be lost where its reader is slow. */
static void close_streams(struct session *s)
{
    stream_free(s->in);
    stream_free(s->out[STREAM_OUT]);
    stream_free(s->out[STREAM_ERR]);
    for (int fd = 0; fd < 3; fd++)
        if (s->out[STREAM_OUT] && s->std_flags[fd] >= 0)
            fcntl(fd, F_SETFL, s->std_flags[fd]);
}

static void session_done(struct session *s)
{
    close_streams(s);
    for (size_t i = 0; i < SIGNALS; i++)
        if (s->signals[i])
            event_free(s->signals[i]);
    if (s->files)
        files_close(s->files);
    later_done(&s->later);
    deadline_done(&s->linger);
    resolver_free(s->resolver);
    event_base_free(s->base);
}

static int exit_status(const struct session *s)
{
    if (s->stdout_sys)
        return 128 + SIGPIPE;
    if (s->result.verdict == VERDICT_CANCELLED && s->signal_seen)
        return 128 + s->signal_seen;
    return verdict_exit_status(s->result.verdict, &s->result.facts);
}

void session_result_done(struct session_result *r)
{
    json_decref(r->walls);
    json_decref(r->refused);
    json_decref(r->connections);
}

int session_run(const struct engine *engine, const json_t *plan, const struct egress_spec *network,
                const char *layer_dir, const struct run_spec *spec, struct session_result *ret,
                struct err *e)
{
    struct session s = {
        .base = event_base_new(), .spec = spec, .plan = plan, .layer_dir = layer_dir};
    struct err         missing = {0};
    struct egress_spec resolved = network ? *network : (struct egress_spec){0};

    if (!s.base)
        return err_set(e, ERR_INTERNAL, "no event loop");
    signal(SIGPIPE, SIG_IGN); /* a jail may have ended before it is asked for anything */
    later_init(&s.later, s.base, step, &s);
    deadline_init(&s.linger, s.base, stop_when_sent, &s);
    s.resolver = resolved.resolver = resolver_new(s.base, NULL);
    s.sandbox =
        sandbox_start(s.base, engine, plan, network ? &resolved : NULL, &sandbox_ops, &s, e);
    if (!s.sandbox) {
        session_done(&s);
        return -1;
    }
    sandbox_make_group_ahead(s.sandbox); /* while the walls are built */
    watch_signals(&s);
    open_streams(&s, spec->has_stdin);
    if (open_twin(&s, &missing) < 0)
        on_put(&s, &missing);
    else
        prepare(&s);
    event_base_dispatch(s.base);
    *ret = (struct session_result){s.result, exit_status(&s), s.walls, s.refused, s.connections};
    str_copy(ret->files_note, sizeof ret->files_note, s.files_note);
    session_done(&s);
    if (s.stdout_sys && s.stdout_sys != EPIPE) {
        session_result_done(ret);
        errno = s.stdout_sys;
        return err_sys(e, "standard output");
    }
    return 0;
}
