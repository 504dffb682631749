/* mcp-trips - a client that costs nothing, for servers on stdio.
 *
 *   mcp-trips COUNT WINDOW FIRST EACH PROGRAM [ARGS…]
 *
 * Starts the program, sends the line FIRST and waits for a line; then sends the line EACH, COUNT
 * times, with at most WINDOW lines unanswered: 1 is one by one. Prints `name value` lines:
 * trips_per_s of the latter, cpu_us_per_trip that the program used (its start included),
 * answer_bytes of the last.
 * Notifications would count as answers: ask for none. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"

enum { CHUNK = 1 << 16 };

static int to_fd, from_fd;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static pid_t start(char **argv)
{
    posix_spawn_file_actions_t fds;
    int                        in[2], out[2];
    pid_t                      pid;

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        abort();
    posix_spawn_file_actions_init(&fds);
    posix_spawn_file_actions_adddup2(&fds, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&fds, out[1], STDOUT_FILENO);
    if (posix_spawn(&pid, argv[0], &fds, NULL, argv, environ) != 0)
        exit(1);
    posix_spawn_file_actions_destroy(&fds);
    close(in[0]);
    close(out[1]);
    to_fd = in[1];
    from_fd = out[0];
    fcntl(to_fd, F_SETFL, O_NONBLOCK);
    return pid;
}

/* How many lines came; waits until there is one, or until there is room to write when asked to. */
static long hear(bool or_room, size_t *line_bytes)
{
    static char   chunk[CHUNK];
    struct pollfd fds[] = {{from_fd, POLLIN, 0}, {to_fd, POLLOUT, 0}};
    long          lines = 0;
    ssize_t       n;

    if (or_room && poll(fds, 2, -1) > 0 && !fds[0].revents)
        return 0;
    n = read(from_fd, chunk, sizeof chunk);
    if (n <= 0) {
        fprintf(stderr, "mcp-trips: the program has ended\n");
        exit(1);
    }
    for (const char *at = chunk, *end; (end = memchr(at, '\n', (size_t)(chunk + n - at)));) {
        *line_bytes = (size_t)(end + 1 - at);
        at = end + 1;
        lines++;
    }
    return lines;
}

/* As many copies of the line as fit into one write. */
static void fill(struct buf *b, const char *line, long copies)
{
    for (; copies > 0 && b->size < CHUNK; copies--)
        buf_printf(b, "%s\n", line);
}

static void drive(const char *line, long count, long window, size_t *answer_bytes)
{
    struct buf out;
    long       queued = 0, answered = 0;
    ssize_t    n;

    buf_init(&out, 2 * CHUNK + strlen(line) + 2);
    while (answered < count) {
        long before = (long)out.size, room = window - (queued - answered);
        if (room > count - queued)
            room = count - queued;
        fill(&out, line, room);
        queued += ((long)out.size - before) / ((long)strlen(line) + 1);
        n = out.size > 0 ? write(to_fd, out.data, out.size) : 0;
        if (n > 0)
            buf_drop(&out, (size_t)n);
        answered += hear(out.size > 0, answer_bytes);
    }
    buf_done(&out);
}

static double cpu_us(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e6 +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    long          count = argc < 6 ? 0 : strtol(argv[1], NULL, 10);
    long          window = argc < 6 ? 0 : strtol(argv[2], NULL, 10);
    double        first, last;
    size_t        bytes = 0;
    struct rusage used;
    int           status;
    pid_t         pid;

    if (window < 1) {
        fprintf(stderr, "usage: mcp-trips COUNT WINDOW FIRST EACH PROGRAM [ARGS…]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    pid = start(argv + 5);
    drive(argv[3], 1, 1, &bytes);
    first = now_ms();
    drive(argv[4], count, window, &bytes);
    last = now_ms();
    close(to_fd);
    if (wait4(pid, &status, 0, &used) != pid || status != 0)
        return 1;
    printf("trips_per_s %.0f\n", (double)count * 1e3 / (last - first));
    printf("cpu_us_per_trip %.3f\n", cpu_us(&used) / (double)(count + 1));
    printf("answer_bytes %zu\n", bytes);
    return 0;
}
