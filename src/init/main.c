/* jerboa-init - pid 1 of every sandbox.
 *
 * Theory of operation. The server's frames come in on stdin, ours leave on stdout; descriptor 3
 * brings cgroups from the jail. One poll loop moves bytes; nothing else happens here. Started with
 * the word `egress` it also carries the connections that code makes (egress.h), with `alone` it
 * stands in for a jail (alone.h, group.h). Init has no rights that the code beside it lacks: same
 * uid, no capabilities, same seccomp filter. What sets it apart:
 *
 * - It is not dumpable, from its first line: otherwise code of the same uid opens /proc/1/fd/1 and
 *   forges frames.
 * - It is pid 1: when it exits, the kernel kills everything in the sandbox, at once. So the end of
 *   stdin, a broken frame or a write error is simply an exit.
 * - It reaps every orphan. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/alone.h"
#include "init/channel.h"
#include "init/dial.h"
#include "init/egress.h"
#include "init/group.h"
#include "init/inbox.h"
#include "init/node.h"
#include "init/outbox.h"
#include "init/reader.h"
#include "init/scan.h"
#include "init/words.h"

static int watch_children(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void drain(int signal_fd)
{
    struct signalfd_siginfo info;

    while (read(signal_fd, &info, sizeof info) > 0)
        ;
}

/* Waits for something to happen and does what is due. 1: it goes on; 0: the server is gone or broke
 * the protocol; -1: poll failed. */
static int turn(struct inbox *inbox, int signal_fd)
{
    struct pollfd polls[2 + CHANNEL_POLLS_MAX + EGRESS_POLLS_MAX + DIALS_MAX];
    size_t        first = 2 + channel_fill_polls(polls + 2);
    size_t        second = first + egress_fill_polls(polls + first);
    size_t        n = second + dial_fill_polls(polls + second);
    struct err    e = {0};
    int           r;

    outbox_flush();
    polls[0] = (struct pollfd){0, POLLIN, 0};
    polls[1] = (struct pollfd){signal_fd, POLLIN, 0};
    if (poll(polls, n, reader_is_busy() || scan_is_busy() ? 0 : -1) < 0)
        return errno == EINTR ? 1 : -1;
    channel_ready(polls + 2);
    egress_ready(polls + first);
    dial_ready(polls + second);
    reader_step();
    scan_step();
    if (polls[1].revents) {
        drain(signal_fd);
        channel_reap();
    }
    if (!polls[0].revents)
        return 1;
    r = inbox_read(inbox, 0, &e);
    if (r < 0)
        outbox_send_error(0, &e);
    return r > 0;
}

static bool is_alone; /* no jail is outside */

/* The doors before any code runs, be it only the image's Node, so that nobody else has them. */
static int begin(int argc, char **argv, struct err *e)
{
    struct words w;

    TRY(words_parse(argc, argv, &w, e));
    is_alone = w.alone;
    if (w.alone) {
        TRY(alone_begin(&w, e));
        group_enable();
    }
    if (w.egress)
        TRY(egress_open(e));
    return w.alone ? node_try(e) : 0;
}

int main(int argc, char **argv)
{
    struct inbox inbox;
    struct err   e = {0};
    int          r;

    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return 1;
    if (fcntl(3, F_SETFD, FD_CLOEXEC) < 0 &&
        errno != EBADF) /* a program would take cgroups from it */
        return 1;
    int signal_fd = watch_children();
    if (signal_fd < 0)
        return 1;
    if (begin(argc, argv, &e) < 0) {
        outbox_send_error(0, &e);
        outbox_flush();
        if (is_alone)
            alone_end();         /* also here: else it ends while it is being started */
        return is_alone ? 0 : 1; /* a client that fails may have left something: it has not */
    }
    inbox_init(&inbox);
    inbox_send_hello();
    do
        r = turn(&inbox, signal_fd);
    while (r > 0);
    outbox_flush();
    if (is_alone)
        alone_end();
    return r < 0 ? 1 : 0;
}
