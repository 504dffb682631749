#include "inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/redirect.h"

enum { PIPE_SIZE = 1 << 20, READ_SIZE = 1 << 18, NOBODY = 65534 };

/* ---- the namespaces ---- */

static void write_text(const char *path, const char *text)
{
    autofd int fd = open(path, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

void inside_enter(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    unsigned     uid = getuid(), gid = getgid();
    char         map[40];
    autofd int   fd = -1;

    CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0);
    write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", gid);
    write_text("/proc/self/gid_map", map);
    snprintf(map, sizeof map, "0 %u 1", uid);
    write_text("/proc/self/uid_map", map);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0);
}

static int run_as(void (*test)(void), unsigned seconds, uid_t uid)
{
    int   status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(seconds);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (uid != getuid()) {
            CHECK(setgid(uid) == 0 && setuid(uid) == 0);
            prctl(PR_SET_DUMPABLE, 1); /* else /proc/self is still root's */
        }
        inside_enter();
        test();
        _exit(0);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

int inside_run(void (*test)(void), unsigned seconds, const char *path)
{
    int status = run_as(test, seconds, getuid());

    if (status == 0 && getuid() == 0 && (!path || access(path, X_OK) == 0))
        status = run_as(test, seconds, NOBODY);
    return status;
}

void inside_redirect(void)
{
    struct err e = {0};

    if (redirect_to_init(NULL, 0, &e) < 0) {
        fprintf(stderr, "%s\n", e.msg);
        _exit(1);
    }
}

/* ---- init ---- */

void inside_start(struct inside *s, const char *init_path, const char *word)
{
    int                in[2], out[2];
    struct frame       f;
    autobuf struct buf hello;

    CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    fcntl(in[0], F_SETPIPE_SZ, PIPE_SIZE);
    fcntl(out[0], F_SETPIPE_SZ, PIPE_SIZE);
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        CHECK(dup2(in[0], 0) == 0 && dup2(out[1], 1) == 1);
        execl(init_path, "jerboa-init", word, NULL);
        CHECK(!"init can be executed");
    }
    CHECK(s->pid > 0);
    close(in[0]);
    close(out[1]);
    s->to_init = in[1], s->from_init = out[0];
    buf_init(&s->in, FRAME_HEADER + FRAME_MAX + READ_SIZE);
    s->looked_at = 0;
    CHECK(inside_next(s, 5000, &f) && message_check_hello(&f, NULL) == 0);
    buf_init(&hello, 16);
    message_pack_hello(&hello);
    inside_send(s, FRAME_HELLO, 0, 0, hello.data, hello.size);
}

void inside_end(struct inside *s)
{
    int status;

    close(s->to_init);
    close(s->from_init);
    buf_done(&s->in);
    CHECK(waitpid(s->pid, &status, 0) == s->pid && status == 0);
}

bool inside_next(struct inside *s, int ms, struct frame *ret)
{
    struct err e = {0};
    long       n;

    while ((n = frame_parse(s->in.data + s->looked_at, s->in.size - s->looked_at, PEER_INIT, ret,
                            &e)) == 0) {
        struct pollfd p = {s->from_init, POLLIN, 0};
        if (poll(&p, 1, ms) == 0)
            return false;
        buf_drop(&s->in, s->looked_at);
        s->looked_at = 0;
        ssize_t got = read(s->from_init, buf_reserve(&s->in, READ_SIZE), READ_SIZE);
        CHECK(got > 0);
        s->in.size += (size_t)got;
    }
    CHECK(n > 0);
    s->looked_at += (size_t)n;
    return true;
}

void inside_send(struct inside *s, enum frame_type type, uint32_t channel, uint8_t stream,
                 const void *payload, size_t size)
{
    uint8_t      header[FRAME_HEADER];
    struct iovec parts[] = {{header, sizeof header}, {(void *)payload, size}};
    ssize_t      n;

    frame_write_header(header, &(struct frame){type, stream, channel, payload, size});
    n = writev(s->to_init, parts, 2);
    CHECK(n >= FRAME_HEADER);
    n -= FRAME_HEADER;
    CHECK(fd_write_all(s->to_init, (const uint8_t *)payload + n, size - (size_t)n) == 0);
}

void inside_send_credit(struct inside *s, uint32_t channel, uint32_t bytes)
{
    autobuf struct buf b;

    buf_init(&b, 4);
    message_pack_u32(&b, bytes);
    inside_send(s, FRAME_CREDIT, channel, STREAM_OUT, b.data, b.size);
}

/* ---- sockets ---- */

socklen_t address_size(const union address *a)
{
    return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

union address address_of(const char *text, uint16_t port)
{
    union address a = {0};

    if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
        a.v4.sin_port = htons(port);
    } else {
        CHECK(inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1);
        a.v6.sin6_family = AF_INET6;
        a.v6.sin6_port = htons(port);
    }
    return a;
}

void address_check(const union address *a, const char *text, uint16_t port)
{
    union address b = address_of(text, port);

    CHECK(a->any.sa_family == b.any.sa_family);
    if (a->any.sa_family == AF_INET)
        CHECK(a->v4.sin_addr.s_addr == b.v4.sin_addr.s_addr && a->v4.sin_port == b.v4.sin_port);
    else
        CHECK(memcmp(&a->v6.sin6_addr, &b.v6.sin6_addr, 16) == 0 &&
              a->v6.sin6_port == b.v6.sin6_port);
}

int bound(int type, const char *text, uint16_t port)
{
    union address a = address_of(text, port);
    int           fd = socket(a.any.sa_family, type | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && bind(fd, &a.any, address_size(&a)) == 0);
    return fd;
}

int listener(const char *text, uint16_t port)
{
    int fd = bound(SOCK_STREAM, text, port);

    CHECK(listen(fd, 10) == 0);
    return fd;
}

int connecting(const char *text, uint16_t port, int *ret_fd)
{
    union address a = address_of(text, port);

    *ret_fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(*ret_fd >= 0);
    return connect(*ret_fd, &a.any, address_size(&a)) < 0 ? errno : 0;
}

int sending(const char *text, uint16_t port, int *ret_fd)
{
    union address a = address_of(text, port);

    *ret_fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(*ret_fd >= 0);
    return sendto(*ret_fd, "query of some bytes", 19, 0, &a.any, address_size(&a)) < 0 ? errno : 0;
}
