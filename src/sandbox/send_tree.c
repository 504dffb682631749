/* Theory of operation. Outside, a child reads the tree (`jerboa-layer pack`): the loop does not
 * wait for disks. Inside, a Node makes it anew from its stdin (engine/unpack.cjs): every image has
 * one. Between them this file moves bytes as far as that stdin has room. It is over when both have
 * ended; what makes it fail before, a deadline or who cancels it, ends the Node, and that the rest.
 */
#include "sandbox/send_tree.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/program.h"
#include "base/str.h"
#include "engine/layout.h"
#include "loop/child.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "loop/stream.h"
#include "sandbox/process.h"

enum { BUFFER = 1 << 16, SAID_MAX = 2048, SEND_MS = 600000 };

static const char unpack_text[] =
#include "unpack.cjs.h"
    ;

struct sending {
    struct later    later;
    struct deadline deadline;
    struct child    packer;
    struct stream  *in;
    struct process *process; /* NULL: done, or never started */
    struct buf      said;    /* by it, on stderr */
    const char     *what;
    struct err      err;
    void (*done)(void *owner, const struct err *e);
    void *owner;

    /* facts */
    bool packer_exited;
};

static void step(void *owner)
{
    struct sending *s = owner;

    if (!s->process && !s->packer_exited)
        child_kill(&s->packer); /* nobody takes its bytes; it cannot be waiting for us otherwise */
    if (s->process || !s->packer_exited)
        return;
    s->done(s->owner, &s->err);
    stream_free(s->in);
    child_done(&s->packer);
    buf_done(&s->said);
    later_done(&s->later);
    deadline_done(&s->deadline);
    free(s);
}

static void give_up(struct sending *s, enum err_kind kind, const char *why)
{
    if (!s->process)
        return; /* it is over, but for its reader */
    if (!s->err.kind)
        err_set(&s->err, kind, "%s %s", s->what, why);
    process_kill(s->process);
}

static void on_deadline(void *owner)
{
    give_up(owner, ERR_TIMEOUT, "takes too long to be put into the sandbox");
}

static void on_packer_exited(void *owner, int status)
{
    struct sending *s = owner;

    s->packer_exited = true;
    if (!(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        give_up(s, ERR_UNAVAILABLE, "cannot be read; why stands in the log");
    later_ask(&s->later);
}

static void on_input(void *owner, struct buf *in, bool ended)
{
    struct sending *s = owner;
    size_t          room, n;

    if (!s->process) {
        buf_drop(in, in->size);
        return;
    }
    room = process_stdin_room(s->process);
    n = in->size < room ? in->size : room;
    process_write_stdin(s->process, in->data, n);
    buf_drop(in, n);
    if (ended && in->size == 0)
        process_end_stdin(s->process);
}

static void on_stdin_room(void *owner)
{
    struct sending *s = owner;

    stream_offer(s->in);
}

static void on_started(void *owner)
{
    (void)owner;
}

static void on_output(void *owner, uint8_t stream, const uint8_t *bytes, size_t size)
{
    struct sending *s = owner;
    size_t          room = SAID_MAX - s->said.size;

    if (stream == STREAM_ERR)
        buf_add(&s->said, bytes, size < room ? size : room);
    process_consumed(s->process, stream, size);
}

/* What Node says of an error stands in the line that begins with its name. */
static void explain(struct sending *s)
{
    autofree char *text = strndup((const char *)s->said.data, s->said.size);
    char          *error = text ? strstr(text, "\nError: ") : NULL;

    if (error)
        error[1 + strcspn(error + 1, "\n")] = '\0';
    err_set(&s->err, ERR_UNAVAILABLE, "%s cannot be put into the sandbox%s%.150s", s->what,
            error ? ": " : "", error ? error + 8 : "");
}

static void on_done(void *owner, const struct process_result *r)
{
    struct sending *s = owner;

    s->process = NULL;
    if (r->err.kind && !s->err.kind)
        s->err = r->err;
    else if (r->exited.code != 0 && !s->err.kind)
        explain(s);
    later_ask(&s->later);
}

static const struct process_ops process_ops = {.started = on_started,
                                               .output = on_output,
                                               .exited = on_started,
                                               .stdin_room = on_stdin_room,
                                               .done = on_done};
static const struct stream_ops  stream_ops = {.input = on_input};

static int start_packer(struct sending *s, struct event_base *base, const struct send_tree *tree,
                        struct err *e)
{
    autofree char    *path = program_find("jerboa-layer", e);
    const char *const argv[] = {"jerboa-layer", tree->list_fd < 0 ? "pack" : "pack-some", tree->dir,
                                NULL};
    autofd int        nothing = open("/dev/null", O_RDWR | O_CLOEXEC), out = -1, in = -1;
    int               ends[2];

    if (!path)
        return -1;
    if (nothing < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "pipe");
    in = ends[0], out = ends[1];
    struct child_fd fds[] = {
        {tree->list_fd < 0 ? nothing : tree->list_fd, 0}, {out, 1}, {STDERR_FILENO, 2}, {-1, -1}};
    TRY(child_start(&s->packer, base, path, argv, NULL, fds, on_packer_exited, s, e));
    s->in = stream_new(base, take_fd(&in), -1, BUFFER, 0, &stream_ops, s);
    return 0;
}

struct sending *send_tree_start(struct sandbox *sandbox, const struct send_tree      *tree,
                                void (*done)(void *owner, const struct err *e), void *owner)
{
    const char *argv[] =
        {layout_node, "-e", unpack_text, tree->target, tree->list_fd < 0 ? "all" : "some", NULL},
               *env[] = {NULL};
    struct message_spawn m = {.has_stdin = true, .cwd = "/", .argv = argv, .env = env};
    struct sending      *s = calloc(1, sizeof *s);

    if (!s)
        abort();
    s->what = tree->what;
    s->done = done;
    s->owner = owner;
    buf_init(&s->said, SAID_MAX);
    later_init(&s->later, sandbox_base(sandbox), step, s);
    deadline_init(&s->deadline, sandbox_base(sandbox), on_deadline, s);
    deadline_set(&s->deadline, SEND_MS);
    if (start_packer(s, sandbox_base(sandbox), tree, &s->err) < 0)
        s->packer_exited = true;
    else
        s->process = process_start(sandbox, &m, &process_ops, s, &s->err);
    later_ask(&s->later);
    return s;
}

void send_tree_cancel(struct sending *s)
{
    give_up(s, ERR_CANCELLED, "is not wanted in the sandbox any more");
}
