/* The loop answers while jerboa-fetch works for it.
 *
 * This process runs the loop as the server does (loop/child, loop/stream). Beside it: a registry
 * with a document of 8 MiB and a tarball of 16 MiB; jerboa-fetch, which reads, hashes and unpacks
 * them; and a client that sends a byte through a pipe and waits until the loop sends it back. Each
 * answer must come within 50 ms, and no turn of the loop, from one wait for events to the next, may
 * take that long.
 *
 * Only one thing is not counted: time in which a process could have run and had no processor, which
 * the kernel counts itself (schedstat). That is what other programs on a busy machine take, and no
 * loop can help it. Where processors are free there is none of it, and 50 ms are 50 ms of the
 * clock. Work and waiting of the loop's own count in full: the last two tests do some of either on
 * the loop, to show that both measures notice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <archive.h>
#include <archive_entry.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/str.h"
#include "loop/child.h"
#include "loop/stream.h"
#include "store/runtime.h"

enum { DOCUMENT = 8 << 20, CONTENT = 16 << 20, ANSWER_NS = 50000000, SECONDS_MAX = 90 };

/* ---- the registry ---- */

static struct buf node_tgz, npm_tgz, node_document, npm_document;
static char       home[64];
static int        listen_fd = -1;
static uint16_t   port;

static ssize_t keep(struct archive *a, void *owner, const void *data, size_t size)
{
    (void)a;
    return buf_add(owner, data, size) < 0 ? -1 : (ssize_t)size;
}

static void add_member(struct archive *a, const char *name, const void *data, size_t size)
{
    struct archive_entry *entry = archive_entry_new();

    archive_entry_set_pathname(entry, name);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, data, size), (la_ssize_t)size);
    archive_entry_free(entry);
}

/* Two members; the second is `size` bytes that do not compress. */
static void make_tgz(struct buf *ret, const char *first, const char *second, size_t size)
{
    struct archive    *a = archive_write_new();
    autofree uint32_t *content = malloc(size + 4);

    assert_non_null(content);
    for (size_t i = 0; i <= size / 4; i++)
        content[i] = (uint32_t)(i * 2654435761u) ^ (uint32_t)(i * i);
    buf_init(ret, (size_t)CONTENT * 2);
    archive_write_set_format_ustar(a);
    archive_write_add_filter_gzip(a);
    archive_write_set_filter_option(a, "gzip", "compression-level", "1");
    assert_int_equal(archive_write_open(a, ret, NULL, keep, NULL), ARCHIVE_OK);
    add_member(a, first, "x", 1);
    add_member(a, second, content, size);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
}

/* One version that counts, and padding up to `size` in versions that do not. */
static void make_document(struct buf *ret, const char *name, const struct buf *tgz, size_t size)
{
    unsigned char  sum[EVP_MAX_MD_SIZE];
    autofree char *integrity = NULL;

    assert_true(EVP_Digest(tgz->data, tgz->size, sum, NULL, EVP_sha512(), NULL));
    integrity = base64_encode(sum, 64);
    buf_init(ret, size + 4096);
    buf_printf(ret,
               "{\"versions\":{\"24.1.0\":{\"dist\":{\"integrity\":\"sha512-%s\",\"tarball\":"
               "\"http://x.test/%s.tgz\"}}",
               integrity, name);
    for (int i = 0; ret->size < size; i++)
        buf_printf(ret, ",\"0.0.%d\":{\"dist\":{\"a\":[1,2,3,4,5,6,7,8,9],\"b\":{\"c\":\"d\"}}}",
                   i);
    buf_printf(ret, "}}");
}

static const struct buf *find_document(const char *request)
{
    static const char node[] = "GET /node-linux-" RUNTIME_ARCH;

    if (str_starts(request, "GET /npm.tgz "))
        return &npm_tgz;
    if (str_starts(request, "GET /npm "))
        return &npm_document;
    return str_starts(request, node) && str_starts(request + strlen(node), ".tgz ") ? &node_tgz
           : str_starts(request, node)                                              ? &node_document
                                                                                    : NULL;
}

static void serve(void)
{
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        autofd int        fd = accept(listen_fd, NULL, NULL);
        char              request[4096], head[128];
        ssize_t           n = fd < 0 ? -1 : read(fd, request, sizeof request - 1);
        const struct buf *body;
        if (n <= 0)
            continue;
        request[n] = '\0';
        body = find_document(request);
        snprintf(head, sizeof head,
                 "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                 body ? "200 OK" : "404 Not Found", body ? body->size : 0);
        fd_write_all(fd, head, strlen(head));
        if (body)
            fd_write_all(fd, body->data, body->size);
    }
}

/* A process that goes when this one goes. */
static pid_t fork_helper(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void end_helper(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- the clock ---- */

struct moment {
    int64_t ns;
    int64_t withheld_ns; /* so far, in which the process could have run */
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static int open_schedstat(pid_t pid)
{
    autofree char *path = str_format("/proc/%d/schedstat", (int)pid);

    return open(path, O_RDONLY | O_CLOEXEC);
}

/* "ran withheld slices"; a kernel that does not count withholds nothing. */
static int64_t read_withheld(int schedstat_fd)
{
    char      text[96] = "";
    long long ran, withheld;
    ssize_t   n = pread(schedstat_fd, text, sizeof text - 1, 0);

    return n > 0 && sscanf(text, "%lld %lld", &ran, &withheld) == 2 ? withheld : 0;
}

static struct moment take_moment(int schedstat_fd)
{
    return (struct moment){.withheld_ns = read_withheld(schedstat_fd), .ns = now_ns()};
}

static void keep_longer(int64_t *longest, int64_t ns)
{
    *longest = ns > *longest ? ns : *longest;
}

/* ---- turns of the loop ---- */

static struct turns {
    int           schedstat_fd;
    struct moment began; /* ns is 0 while none has */
    int64_t       longest_ns;
    int           count;
} turns = {.schedstat_fd = -1};

int __real_epoll_wait(int fd, struct epoll_event *events, int max, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout);

/* libevent comes by here when a turn is over. */
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    int n;

    if (turns.began.ns) {
        int64_t took = now_ns() - turns.began.ns;
        keep_longer(&turns.longest_ns,
                    took - (read_withheld(turns.schedstat_fd) - turns.began.withheld_ns));
        turns.count++;
    }
    n = __real_epoll_wait(fd, events, max, timeout);
    turns.began = take_moment(turns.schedstat_fd);
    return n;
}

static void start_turns(void)
{
    turns = (struct turns){.schedstat_fd = open_schedstat(getpid())};
}

/* ---- the client ---- */

struct pings {
    int64_t longest_ns;       /* that an answer took, with a processor at hand */
    int64_t longest_clock_ns; /* by the clock */
    int     count;
};

/* Sends a byte, waits for it, over and over. */
static void ping(pid_t loop, int to_fd, int from_fd, struct pings *ret)
{
    int  of_loop = open_schedstat(loop), own = open_schedstat(getpid());
    char byte = 'p';

    for (;;) {
        int64_t withheld = read_withheld(of_loop) + read_withheld(own), began = now_ns();
        if (write(to_fd, &byte, 1) != 1 || read(from_fd, &byte, 1) != 1)
            _exit(0);
        int64_t took = now_ns() - began;
        withheld = read_withheld(of_loop) + read_withheld(own) - withheld;
        keep_longer(&ret->longest_clock_ns, took);
        keep_longer(&ret->longest_ns, took - withheld);
        ret->count++;
        usleep(2000);
    }
}

/* ---- the loop ---- */

struct server {
    struct event_base *base;
    struct stream     *stream;
    struct child       child;
    int                status;
    pid_t              client;
    struct pings      *pings; /* shared with the client */
    int                in_fd; /* the stream's */
    void (*work)(void);
    bool has_worked; /* itself, on the loop */
    int  answers;    /* since then */
};

static void on_input(void *owner, struct buf *in, bool ended)
{
    struct server *s = owner;

    (void)ended;
    stream_write(s->stream, in->data, in->size);
    buf_drop(in, in->size);
    if (s->has_worked && ++s->answers == 3) /* so the client has counted the first */
        event_base_loopbreak(s->base);
}

static void on_left(void *owner, size_t bytes)
{
    (void)owner;
    (void)bytes;
}

static void on_broken(void *owner, int sys)
{
    (void)owner;
    (void)sys;
}

static void start_server(struct server *s)
{
    static const struct stream_ops ops = {on_input, on_left, on_broken};
    int                            in[2], out[2];
    pid_t                          self = getpid();

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    *s = (struct server){.base = event_base_new(), .status = -1, .in_fd = in[0]};
    s->pings =
        mmap(NULL, sizeof *s->pings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s->pings != MAP_FAILED);
    s->client = fork_helper();
    if (s->client == 0)
        ping(self, in[1], out[0], s->pings);
    close(in[1]);
    close(out[0]);
    s->stream = stream_new(s->base, in[0], out[1], 4096, 4096, &ops, s);
    start_turns();
}

static void end_server(struct server *s)
{
    end_helper(s->client);
    child_done(&s->child);
    stream_free(s->stream);
    event_base_free(s->base);
    munmap(s->pings, sizeof *s->pings);
    fd_close(&turns.schedstat_fd);
}

static void on_exited(void *owner, int status)
{
    struct server *s = owner;

    s->status = status;
    event_base_loopbreak(s->base);
}

static void print_figures(const struct server *s)
{
    print_message("%d answers, the longest took %.1f ms (%.1f by the clock); %d turns, the longest "
                  "%.1f ms\n",
                  s->pings->count, (double)s->pings->longest_ns / 1e6,
                  (double)s->pings->longest_clock_ns / 1e6, turns.count,
                  (double)turns.longest_ns / 1e6);
}

static void test_answers_meanwhile(void **state)
{
    struct server  s;
    struct err     e = {0};
    autofree char *store = str_format("JERBOA_HOME=%s", home);
    autofree char *at = str_format("npm_config_registry=http://127.0.0.1:%u/", port);
    const char    *argv[] = {"env",
                             "HOME=/nonexistent",
                             "NO_PROXY=127.0.0.1",
                             store,
                             at,
                             FETCH_PROGRAM,
                             "runtime",
                             "node:24",
                             NULL};

    (void)state;
    start_server(&s);
    if (child_start(&s.child, s.base, "/usr/bin/env", argv, NULL,
                    (struct child_fd[]){{2, 2}, {-1, -1}}, on_exited, &s, &e) < 0)
        fail_msg("%s", e.msg);
    event_base_dispatch(s.base);
    print_figures(&s);
    assert_int_equal(s.status, 0);
    assert_true(s.pings->count >= 50);
    assert_true(turns.count >= 50);
    assert_true(s.pings->longest_ns < ANSWER_NS);
    assert_true(turns.longest_ns < ANSWER_NS);
    end_server(&s);
}

/* ---- what the measures notice ---- */

static void parse(void)
{
    autojson json_t *document =
        json_parse((const char *)node_document.data, node_document.size, NULL);

    assert_non_null(document);
}

static void wait_longer(void)
{
    nanosleep(&(struct timespec){.tv_nsec = ANSWER_NS + 5000000}, NULL);
}

/* Works when a ping has come that will have to wait for it. */
static void work_here(evutil_socket_t fd, short what, void *owner)
{
    struct server *s = owner;

    (void)fd;
    (void)what;
    assert_int_equal(poll(&(struct pollfd){.fd = s->in_fd, .events = POLLIN}, 1, -1), 1);
    turns.began = take_moment(turns.schedstat_fd);
    s->work();
    s->has_worked = true;
}

static void assert_noticed(void (*work)(void))
{
    struct server s;

    start_server(&s);
    s.work = work;
    event_base_once(s.base, -1, EV_TIMEOUT, work_here, &s, &(struct timeval){.tv_usec = 100000});
    event_base_dispatch(s.base);
    print_figures(&s);
    /* What is subtracted from an answer may be the wait before it, on a machine that is very busy:
     * there the turn, which is exact, is what notices. */
    assert_true(s.pings->longest_clock_ns >= ANSWER_NS);
    assert_true(turns.longest_ns >= ANSWER_NS);
    end_server(&s);
}

static void test_would_not_if_it_did_the_work(void **state)
{
    (void)state;
    assert_noticed(parse);
}

static void test_would_not_if_it_waited(void **state)
{
    (void)state;
    assert_noticed(wait_longer);
}

/* ---- all together ---- */

static pid_t registry;

static int set_up(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size = sizeof a;

    (void)state;
    make_tgz(&node_tgz, "package/bin/node", "package/lib/large", CONTENT);
    make_tgz(&npm_tgz, "package/bin/npm-cli.js", "package/bin/npx-cli.js", 10);
    make_document(&node_document, "node-linux-" RUNTIME_ARCH, &node_tgz, DOCUMENT);
    make_document(&npm_document, "npm", &npm_tgz, 0);
    strcpy(home, "/tmp/jerboa-fetch-loop-XXXXXX");
    listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!mkdtemp(home) || bind(listen_fd, (struct sockaddr *)&a, sizeof a) < 0 ||
        listen(listen_fd, 8) < 0 || getsockname(listen_fd, (struct sockaddr *)&a, &size) < 0)
        return -1;
    port = ntohs(a.sin_port);
    registry = fork_helper();
    if (registry == 0)
        serve();
    return 0;
}

static int tear_down(void **state)
{
    char command[80];

    (void)state;
    end_helper(registry);
    fd_close(&listen_fd);
    buf_done(&node_tgz);
    buf_done(&npm_tgz);
    buf_done(&node_document);
    buf_done(&npm_document);
    snprintf(command, sizeof command, "rm -rf %s", home);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_meanwhile),
        cmocka_unit_test(test_would_not_if_it_did_the_work),
        cmocka_unit_test(test_would_not_if_it_waited),
    };

    alarm(SECONDS_MAX);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
