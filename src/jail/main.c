/* jerboa-jail - builds the walls around jerboa-init and stays outside as its parent.
 *
 * Descriptors: 0 and 1 are the pipe between the server and init, which the jail only passes on (and
 * uses once, for an ERROR frame, when init could not be started); 3 is the control socket to the
 * server, in the same grammar: PLAN comes first, then GROUP_MAKE and GROUP_END for each run.
 *
 * It lives as long as both its neighbours. The control socket ends: the server is gone or wants it
 * so; init ends: nothing is left to guard. In either case init is killed, the cgroups are removed,
 * and the jail exits. It is single-threaded: PDEATHSIG of init follows the thread that cloned it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "jail/handover.h"
#include "jail/report.h"
#include "jail/steps.h"

enum { CONTROL_FD = 3, CONTROL_MAX = 2 * (FRAME_HEADER + FRAME_MAX) };

/* ---- groups for runs ---- */

static void make_group(struct jail *j, uint32_t group)
{
    struct err e = {0};
    int        fds[CGROUP_HIERARCHIES_MAX];
    int        n = cgroup_make_run(&j->cgroup, &j->limits, group, fds, &e);

    if (handover_send(j->group_fd, group, fds, n) < 0 && n > 0)
        err_sys(&e, "hand cgroup %u over", group);
    if (e.kind)
        report_error(CONTROL_FD, group, &e);
    while (n > 0)
        fd_close(&fds[--n]);
}

static void end_group(struct jail *j, uint32_t group)
{
    struct message_group_ended counters = {0};

    cgroup_end_run(&j->cgroup, group, &counters);
    report_group_ended(CONTROL_FD, group, &counters);
}

/* ---- the control socket ---- */

static int handle_frame(struct jail *j, const struct frame *f, struct err *e)
{
    switch (f->type) {
    case FRAME_GROUP_MAKE:
        make_group(j, f->channel);
        return 0;
    case FRAME_GROUP_END:
        end_group(j, f->channel);
        return 0;
    default:
        return err_set(e, ERR_INVALID, "%s frame for the jail", frame_type_name(f->type));
    }
}

/* Reads once: 0 at the end. */
static int fill(struct buf *b)
{
    enum { STEP = 1 << 16 };
    uint8_t *to = buf_reserve(b, STEP);
    ssize_t  n;

    if (!to)
        return 0;
    do
        n = read(CONTROL_FD, to, STEP);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    b->size += (size_t)n;
    return 1;
}

static int handle_all(struct jail *j, struct buf *b, struct err *e)
{
    struct frame f;
    long         n;

    while ((n = frame_parse(b->data, b->size, PEER_SERVER, &f, e)) > 0) {
        TRY(handle_frame(j, &f, e));
        buf_drop(b, (size_t)n);
    }
    return (int)n;
}

static void guard(struct jail *j, struct buf *b)
{
    struct pollfd polls[] = {{CONTROL_FD, POLLIN, 0}, {j->pid_fd, POLLIN, 0}};
    struct err    e = {0};

    for (;;) {
        if (handle_all(j, b, &e) < 0)
            return;
        if (poll(polls, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        if (polls[1].revents)
            return;
        if (polls[0].revents && !fill(b))
            return;
    }
}

/* ---- the beginning ---- */

static int read_plan(struct buf *b, struct frame *ret, struct err *e)
{
    long n;

    while ((n = frame_parse(b->data, b->size, PEER_SERVER, ret, e)) == 0)
        if (!fill(b))
            return err_set(e, ERR_CANCELLED, "no plan came");
    TRY(n);
    if (ret->type != FRAME_PLAN)
        return err_set(e, ERR_INVALID, "%s frame where the plan belongs",
                       frame_type_name(ret->type));
    return 0;
}

static int start(struct jail *j, struct buf *b, json_t **ret_document, struct err *e)
{
    struct frame f;

    TRY(read_plan(b, &f, e));
    *ret_document = json_parse((const char *)f.payload, f.size, e);
    if (!*ret_document)
        return -1;
    buf_drop(b, FRAME_HEADER + f.size);
    TRY(plan_decode(*ret_document, &j->plan, e));
    return steps_run(j, e);
}

static int jail_main(void)
{
    struct jail        j;
    struct err         e = {0};
    autojson json_t   *document = NULL;
    autobuf struct buf b;
    int                r;

    signal(SIGPIPE, SIG_IGN);
    buf_init(&b, CONTROL_MAX);
    jail_init(&j);
    r = start(&j, &b, &document, &e);
    if (r < 0)
        report_error(1, 0, &e);
    /* From here on the pipe is the server's and init's alone. */
    close(0);
    close(1);
    if (r == 0)
        guard(&j, &b);
    jail_done(&j);
    return r < 0;
}

int main(int argc, char **argv)
{
    struct err e = {0};

    if (argc == 1)
        return jail_main();
    if (argc == 2 && strcmp(argv[1], "steps") == 0) {
        steps_print();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "sweep") == 0) {
        if (cgroup_sweep(&e) == 0)
            return 0;
        fprintf(stderr, "jerboa-jail: %s\n", e.msg);
        return 1;
    }
    fprintf(stderr, "jerboa-jail: started by jerboa; by hand only 'steps' and 'sweep'\n");
    return 2;
}
