/* egress INIT: what the way out of a sandbox costs, beside a direct connection on loopback.
 *
 * Code's end of a redirected connection goes through the real init and the pipe to a server of our
 * own, which gives, takes or gives back bytes by itself: the policy and the connection outside are
 * not part of it. The direct one goes to a process that does the same on a socket. Both in one
 * network namespace, in turns; medians count. */
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "programs/inside.h"

enum { GIVE = 1, TAKE = 2, ECHO = 3 }; /* the port says what the other end is to do */

enum {
    ROUNDS = 5,
    TRIPS = 2000,
    BYTES = 64 << 20,
    PIECE = 1 << 16,
    GIVEN = 1 << 15,
    CONNECTS = 200,
    MS = 10000
};

static const char *const hosts[] = {"127.0.0.1", "93.184.215.14"}; /* direct, redirected */
static uint8_t           piece[PIECE];

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static pid_t fork_helper(void)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

/* ---- the direct end: one connection after the other ---- */

static void serve_direct(int what)
{
    int     door = listener("127.0.0.1", (uint16_t)(8000 + what)), on = 1;
    ssize_t n;

    for (;;) {
        autofd int fd = accept(door, NULL, NULL);
        size_t     left = BYTES;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (what == GIVE)
            for (; left > 0; left -= PIECE)
                CHECK(fd_write_all(fd, piece, PIECE) == 0);
        else
            while ((n = read(fd, piece, PIECE)) > 0)
                if (what == ECHO)
                    CHECK(fd_write_all(fd, piece, (size_t)n) == 0);
    }
}

/* ---- the end at the pipe: one connection after the other, too ---- */

static struct served {
    uint32_t id;
    int      what;
    uint32_t credit, owed;
    size_t   left;
} served;

static void give(struct inside *s)
{
    while (served.what == GIVE && served.left > 0 && served.credit > 0) {
        size_t n = served.credit < GIVEN ? served.credit : GIVEN;
        n = n < served.left ? n : served.left;
        inside_send(s, FRAME_DATA, served.id, STREAM_IN, piece, n);
        served.credit -= (uint32_t)n;
        served.left -= n;
        if (served.left == 0)
            inside_send(s, FRAME_END, served.id, STREAM_IN, NULL, 0);
    }
}

static void take(struct inside *s, const struct frame *f)
{
    if (served.what == ECHO)
        inside_send(s, FRAME_DATA, served.id, STREAM_IN, f->payload, f->size);
    served.owed += (uint32_t)f->size;
    if (served.owed >= WINDOW_CONNECTION / 4) {
        inside_send_credit(s, served.id, served.owed);
        served.owed = 0;
    }
}

static void serve_pipe(const char *init_path)
{
    struct inside          s;
    struct frame           f;
    struct message_connect m;
    uint32_t               v;

    inside_start(&s, init_path, "egress");
    while (inside_next(&s, -1, &f)) {
        if (f.type == FRAME_CONNECT) {
            CHECK(message_unpack_connect(&f, &m, NULL) == 0);
            served = (struct served){f.channel, m.port - 8000, WINDOW_CONNECTION, 0, BYTES};
        } else if (f.channel != served.id) {
            continue;
        } else if (f.type == FRAME_DATA) {
            take(&s, &f);
        } else if (f.type == FRAME_CREDIT) {
            CHECK(message_unpack_u32(&f, &v, NULL) == 0);
            served.credit += v;
        } else if (f.type == FRAME_END && served.what != GIVE) {
            inside_send(&s, FRAME_END, served.id, STREAM_IN, NULL, 0);
        }
        give(&s);
    }
}

/* ---- code ---- */

static int dial(int host, int what)
{
    int on = 1, fd;

    for (int i = 0; connecting(hosts[host], (uint16_t)(8000 + what), &fd) != 0; i++) {
        CHECK(errno == ECONNREFUSED && i < MS); /* they are still starting */
        close(fd);
        usleep(1000);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Each: one measurement. MB/s, or microseconds. */

static double down(int host)
{
    autofd int fd = dial(host, GIVE);
    double     began = now_s();
    size_t     sum = 0;
    ssize_t    n;

    while ((n = read(fd, piece, PIECE)) > 0)
        sum += (size_t)n;
    CHECK(n == 0 && sum == BYTES);
    return (double)BYTES / 1e6 / (now_s() - began);
}

static double up(int host)
{
    autofd int fd = dial(host, TAKE);
    double     began = now_s();

    for (size_t left = BYTES; left > 0; left -= PIECE)
        CHECK(fd_write_all(fd, piece, PIECE) == 0);
    shutdown(fd, SHUT_WR);
    CHECK(read(fd, piece, 1) == 0); /* all has arrived */
    return (double)BYTES / 1e6 / (now_s() - began);
}

static double trip(int host)
{
    autofd int fd = dial(host, ECHO);
    double     began;

    for (int i = 0; i < 100; i++)
        CHECK(write(fd, piece, 1) == 1 && read(fd, piece, 1) == 1);
    began = now_s();
    for (int i = 0; i < TRIPS; i++)
        CHECK(write(fd, piece, 1) == 1 && read(fd, piece, 1) == 1);
    return (now_s() - began) / TRIPS * 1e6;
}

/* From connect to the first byte that comes back. */
static double first_byte(int host)
{
    double began = now_s();

    for (int i = 0; i < CONNECTS; i++) {
        autofd int fd = dial(host, ECHO);
        CHECK(write(fd, piece, 1) == 1 && read(fd, piece, 1) == 1);
    }
    return (now_s() - began) / CONNECTS * 1e6;
}

/* ---- the table ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const char *name, double (*run)(int host))
{
    double of[2][ROUNDS];

    run(0);
    run(1);
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < 2; k++)
            of[(i + k) % 2][i] = run((i + k) % 2);
    for (int k = 0; k < 2; k++)
        qsort(of[k], ROUNDS, sizeof(double), ascending);
    printf("%s %.1f %.1f\n", name, of[0][ROUNDS / 2], of[1][ROUNDS / 2]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: egress INIT\n");
        return 2;
    }
    alarm(120);
    inside_enter();
    inside_redirect();
    for (int what = GIVE; what <= ECHO; what++)
        if (fork_helper() == 0)
            serve_direct(what);
    if (fork_helper() == 0)
        serve_pipe(argv[1]);
    measure("down", down);
    measure("up", up);
    measure("trip", trip);
    measure("first-byte", first_byte);
    return 0; /* the others die with us */
}
