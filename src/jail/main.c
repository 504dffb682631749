/* jerboa-jail - builds the walls around jerboa-init and stays outside as its parent.
 *
 * Descriptors: 0 and 1 are the pipe between the server and init, which the jail only passes on (and
 * uses once, for an ERROR frame, when init could not be started); 3 is the control socket to the
 * server, in the same grammar: PLAN comes first, then GROUP_MAKE, GROUP_RUN and GROUP_END (or
 * GROUP_DROP) for each run, and ATTACH for each layer.
 *
 * It lives as long as both its neighbours. The control socket ends: the server is gone or wants it
 * so; init ends: nothing is left to guard. In either case init is killed, the cgroups are removed,
 * and the jail exits; if the server is dead, it sweeps first: another jail may have been killed
 * with it, and then nobody else is left to do that. It is single-threaded: PDEATHSIG of init
 * follows the thread that cloned it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "base/version.h"
#include "jail/attach.h"
#include "jail/handover.h"
#include "jail/look.h"
#include "jail/report.h"
#include "jail/steps.h"

enum { CONTROL_FD = 3, CONTROL_MAX = 2 * (FRAME_HEADER + FRAME_MAX) };

/* ---- groups for runs ---- */

/* Without cgroups init gets a descriptor all the same, into which the run can write as into any. */
static int open_nothing(int fds[CGROUP_HIERARCHIES_MAX], struct err *e)
{
    fds[0] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return fds[0] < 0 ? err_sys(e, "/dev/null") : 1;
}

/* The server waits for what is told here, and init for each group: where either cannot be had, the
 * sandbox is lost, and -1 ends the jail. */
static int make_group(struct jail *j, uint32_t group)
{
    struct err e = {0};
    int        fds[CGROUP_HIERARCHIES_MAX];
    int        n = jail_has_cgroup(j) ? cgroup_make_run(&j->cgroup, &j->limits, group, fds, &e)
                                      : open_nothing(fds, &e);

    int sent = handover_send(j->group_fd, group, fds, n), told = 0;

    if (sent < 0 && n > 0)
        err_sys(&e, "hand cgroup %u over", group);
    if (e.kind)
        told = report_error(CONTROL_FD, group, &e);
    while (n > 0)
        fd_close(&fds[--n]);
    return sent < 0 || told < 0 ? -1 : 0;
}

/* A Node that was held and did not get all its threads, because somebody outside had taken the
 * last, hangs for ever. Killed before it took the byte that lets it go, it has another one in its
 * place (sandbox/run.c); had it taken that, the verdict says what was refused. */
static int run_group(struct jail *j, uint32_t group)
{
    j->runs++;
    return jail_has_cgroup(j) ? cgroup_kill_refused(&j->cgroup, group) : 0;
}

static void end_watched(struct jail *j, struct message_group_ended *ret)
{
    watch_end(&j->watch);
    *ret = (struct message_group_ended){
        .oom_kills = j->watch.kills, .peak_bytes = j->watch.peak_bytes, .watched = true};
}

static int end_group(struct jail *j, uint32_t group)
{
    struct message_group_ended counters = {0};

    if (jail_has_cgroup(j))
        TRY(cgroup_end_run(&j->cgroup, group, &counters));
    else
        end_watched(j, &counters);
    if (j->runs > 0)
        j->runs--;
    if (j->runs == 0) /* until then a kill was the end of each of them */
        j->watch.kills = j->watch.peak_bytes = 0;
    TRY(report_group_ended(CONTROL_FD, group, &counters));
    if (jail_has_cgroup(j)) /* nobody waits for that any more */
        cgroup_remove_run(&j->cgroup, group);
    return 0;
}

/* What never ran has started nothing, and init has killed it: where there is no cgroup, the others
 * in the sandbox are spared. */
static int drop_group(struct jail *j, uint32_t group)
{
    struct message_group_ended counters = {.watched = !jail_has_cgroup(j)};

    if (jail_has_cgroup(j)) {
        TRY(cgroup_end_run(&j->cgroup, group, &counters));
        cgroup_remove_run(&j->cgroup, group);
    }
    return report_group_ended(CONTROL_FD, group, &counters);
}

static int attach(struct jail *j, const struct frame *f)
{
    struct message_attach m;
    struct err            e = {0};

    if (message_unpack_attach(f, &m, &e) < 0 || attach_layer(j, &m, &e) < 0)
        return report_error(CONTROL_FD, f->channel, &e);
    return report_attached(CONTROL_FD, f->channel);
}

/* Until when the jail may sleep, in ms; -1: until somebody wakes it. */
static int watch_runs(struct jail *j)
{
    return jail_has_cgroup(j) || j->runs == 0 ? -1 : watch_look(&j->watch);
}

/* ---- the control socket ---- */

static int handle_frame(struct jail *j, const struct frame *f, struct err *e)
{
    switch (f->type) {
    case FRAME_GROUP_MAKE:
        return make_group(j, f->channel);
    case FRAME_GROUP_RUN: /* made and waiting needs no looks; this does */
        return run_group(j, f->channel);
    case FRAME_GROUP_END:
        return end_group(j, f->channel);
    case FRAME_GROUP_DROP:
        return drop_group(j, f->channel);
    case FRAME_ATTACH:
        return attach(j, f);
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
    bool          has_swept = !jail_has_cgroup(j);
    struct err    e = {0};

    for (;;) {
        if (handle_all(j, b, &e) < 0)
            return;
        int ready = poll(polls, 2, has_swept ? watch_runs(j) : 0);
        if (ready < 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        if (ready == 0 && !has_swept) { /* nobody waits: what killed jails left can go */
            cgroup_sweep(NULL);         /* and if it cannot, this sandbox is well all the same */
            has_swept = true;
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
    TRY(version_check("jerboa-jail", json_string_value(json_object_get(*ret_document, "version")),
                      e));
    TRY(plan_decode(*ret_document, &j->plan, e));
    return steps_run(j, e);
}

#ifdef __SANITIZE_ADDRESS__
/* At its end a sanitizer stops all threads to look for leaks, and waits for that: a SIGCONT, which
 * may come at any moment here, undoes it, and both wait for ever. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

static int jail_main(void)
{
    struct jail        j;
    struct err         e = {0};
    autojson json_t   *document = NULL;
    autobuf struct buf b;
    pid_t              server = getppid();
    int                r;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL);         /* whoever started us may ignore it; we wait */
    prctl(PR_SET_PDEATHSIG, SIGCONT); /* were we stopped, we would not see that the server died */
    buf_init(&b, CONTROL_MAX);
    jail_init(&j, CONTROL_FD);
    r = start(&j, &b, &document, &e);
    if (r < 0)
        report_error(1, 0, &e);
    /* From here on the pipe is the server's and init's alone. */
    close(0);
    close(1);
    if (r == 0)
        guard(&j, &b);
    jail_done(&j);
    if (getppid() != server && jail_has_cgroup(&j))
        cgroup_sweep(NULL);
    return r < 0;
}

/* ---- by hand ---- */

static int print_steps(const char *argument, struct err *e)
{
    (void)argument;
    (void)e;
    steps_print();
    return 0;
}

/* The table, for who cannot get the frame because no sandbox starts. */
static int print_walls(const char *argument, struct err *e)
{
    autojson json_t *list = walls_json(&(struct walls){0});

    (void)argument;
    if (json_dumpf(list, stdout, JSON_COMPACT) < 0)
        return err_set(e, ERR_INTERNAL, "the walls cannot be printed");
    return 0;
}

static int sweep(const char *argument, struct err *e)
{
    (void)argument;
    return cgroup_sweep(e);
}

/* Asked by who would take another engine if this one cannot work: why not is the answer. What fails
 * just now speaks against nothing. */
static int look(const char *argument, struct err *e)
{
    (void)argument;
    if (look_for_namespaces(e) == 0 || (!err_is_lasting(e) && e->sys != ENOSPC))
        return 0;
    printf("%s\n", e->msg);
    return -1;
}

/* Makes cgroups over to an ordinary user; for root, once a boot. */
static int delegate(const char *argument, struct err *e)
{
    int64_t uid;

    TRY(str_parse_count(argument, 1, UINT32_MAX - 1, &uid, e));
    return cgroup_delegate((uid_t)uid, e);
}

static const struct {
    const char *name;
    int         arguments;
    int (*run)(const char *argument, struct err *e);
} by_hand[] = {{"steps", 0, print_steps},
               {"walls", 0, print_walls},
               {"sweep", 0, sweep},
               {"look", 0, look},
               {"delegate", 1, delegate}};

int main(int argc, char **argv)
{
    struct err e = {0};

    umask(022); /* of cgroups too: one that is closed to its maker would stay, and nobody is limited
                 */
    if (argc == 1)
        return jail_main();
    for (size_t i = 0; i < sizeof by_hand / sizeof by_hand[0]; i++)
        if (argc == 2 + by_hand[i].arguments && strcmp(argv[1], by_hand[i].name) == 0) {
            if (by_hand[i].run(argv[2], &e) == 0)
                return 0;
            fprintf(stderr, "jerboa-jail: %s\n", e.msg);
            return 1;
        }
    fprintf(stderr, "jerboa-jail: started by jerboa; by hand only 'steps', 'walls', 'sweep', "
                    "'look' and 'delegate UID'\n");
    return 2;
}
