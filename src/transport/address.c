#include "transport/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

enum { BACKLOG = 4096 }; /* the kernel caps it at net.core.somaxconn */

static const char unix_prefix[] = "unix:";

/* ---- parsing ---- */

static bool is_loopback(const struct sockaddr *sa)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)sa)->sin6_addr;

    if (sa->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

static int parse_unix(const char *path, struct address *ret, struct err *e)
{
    *ret = (struct address){.is_unix = true, .is_local = true};
    ret->to.local.sun_family = AF_UNIX;
    ret->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
    if (!*path || str_copy(ret->to.local.sun_path, sizeof ret->to.local.sun_path, path) < 0)
        return err_set(e, ERR_INVALID, "the path of a unix socket has 1 to %zu bytes",
                       sizeof ret->to.local.sun_path - 1);
    return 0;
}

/* "HOST" or "[HOST]" before the colon; without one it is this machine only. */
static int split(const char *text, char host[64], const char **ret_port)
{
    const char *colon = strrchr(text, ':');
    size_t      length = colon ? (size_t)(colon - text) : 0;

    *ret_port = colon ? colon + 1 : text;
    if (!colon)
        return str_copy(host, 64, "127.0.0.1");
    if (length >= 2 && text[0] == '[' && colon[-1] == ']') {
        text++;
        length -= 2;
    } else if (memchr(text, ':', length)) {
        return -1; /* an IPv6 address without brackets */
    }
    if (length == 0 || length >= 64)
        return -1;
    snprintf(host, 64, "%.*s", (int)length, text);
    return strcmp(host, "localhost") == 0 ? str_copy(host, 64, "127.0.0.1") : 0;
}

int address_parse(const char *text, struct address *ret, struct err *e)
{
    struct addrinfo  hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                              .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char             host[64];
    const char      *port;
    int64_t          number;

    if (str_starts(text, unix_prefix))
        return parse_unix(text + strlen(unix_prefix), ret, e);
    if (split(text, host, &port) < 0 || str_parse_count(port, 0, 65535, &number, NULL) < 0 ||
        getaddrinfo(host, port, &hints, &found) != 0)
        return err_set(e, ERR_INVALID,
                       "'%.80s' is no address: write PORT, IP:PORT, [IPv6]:PORT or unix:PATH",
                       text);
    *ret = (struct address){.size = found->ai_addrlen, .is_local = is_loopback(found->ai_addr)};
    memcpy(&ret->to.inet, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

/* ---- listening ---- */

/* Whoever made it is gone: nobody accepts there. Anything but a socket is not ours to remove. */
static int remove_stale(const struct address *a, struct err *e)
{
    const char *path = a->to.local.sun_path;
    struct stat st;
    autofd int  probe = -1;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(e, "%.100s", path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, ERR_INVALID, "%.100s exists and is no socket", path);
    probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return err_sys(e, "make a socket");
    if (connect(probe, &a->to.any, a->size) == 0 || errno != ECONNREFUSED)
        return err_set(e, ERR_UNAVAILABLE, "%.100s is served by another program", path);
    if (unlink(path) < 0)
        return err_sys(e, "remove the stale socket %.100s", path);
    return 0;
}

/* The umask makes it 0600 from its first moment: a chmod afterwards would leave one, and could hit
 * what another put in its place. */
static int bind_unix(struct address *a, int fd, struct err *e)
{
    const char *path = a->to.local.sun_path;
    struct stat st;
    mode_t      mask;
    int         r;

    TRY(remove_stale(a, e));
    mask = umask(0177);
    r = bind(fd, &a->to.any, a->size);
    umask(mask);
    if (r < 0 || lstat(path, &st) < 0)
        return err_sys(e, "bind %.100s", path);
    a->dev = st.st_dev;
    a->ino = st.st_ino;
    return 0;
}

static int bind_inet(struct address *a, int fd, struct err *e)
{
    autofree char *url = address_url(a);
    int            on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    /* Inherited by what is accepted: events of a stream must not wait for the peer's ACK. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(fd, &a->to.any, a->size) < 0)
        return err_sys(e, "bind %.150s", url);
    return 0;
}

void address_unlink(const struct address *a)
{
    struct stat st;

    if (a->is_unix && lstat(a->to.local.sun_path, &st) == 0 && st.st_dev == a->dev &&
        st.st_ino == a->ino)
        unlink(a->to.local.sun_path);
}

int address_listen(struct address *a, struct err *e)
{
    autofd int fd = socket(a->to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t  size = sizeof a->to;

    if (fd < 0)
        return err_sys(e, "make a socket");
    TRY(a->is_unix ? bind_unix(a, fd, e) : bind_inet(a, fd, e));
    if (listen(fd, BACKLOG) < 0) {
        err_sys(e, "listen");
        address_unlink(a);
        return -1;
    }
    if (!a->is_unix && getsockname(fd, &a->to.any, &size) < 0)
        return err_sys(e, "ask for the port");
    return take_fd(&fd);
}

char *address_url(const struct address *a)
{
    char host[INET6_ADDRSTRLEN], port[8];

    if (a->is_unix)
        return str_format("%s%s", unix_prefix, a->to.local.sun_path);
    if (getnameinfo(&a->to.any, a->size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return str_format("http://?/mcp");
    return str_format(strchr(host, ':') ? "http://[%s]:%s/mcp" : "http://%s:%s/mcp", host, port);
}
