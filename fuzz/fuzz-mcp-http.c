/* fuzz-mcp-http - bytes as clients might send them to the real HTTP server, on a unix socket.
 *
 * The first byte of an input says how it ends (enum below). The rest is a script of pieces, each
 * ended by one of four control characters (or the end), with a turn of the loop after each:
 *
 *   RS (1e)  the next piece goes on the same connection
 *   GS (1d)  the next piece goes on another connection; this one stays open
 *   FS (1c)  as GS, but this connection is closed
 *   US (1f)  as GS, but this connection is only half closed
 *
 * %STATE%, %TASK% and %SESSION% are as in mcp-fixture.h; %LENGTH% is the size of what follows the
 * empty line of this piece, so that a body may change without its head.
 *
 * Asserted: what comes back begins as an HTTP response; a good request on a new connection is
 * answered after all that; the server stops when it is told; no call is forgotten, and nothing
 * stays on the loop. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp-fixture.h"
#include "transport/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FREED = 1,       /* without a stop */
    STAY = 2,        /* the clients stay connected until after the end */
    NO_READER = 4,   /* they read nothing */
    STOPS_EARLY = 8, /* the stop is asked for before the last piece */
    TOKENS = 16,     /* they must be `a`, whose token is `token-a-0123456789`, or `b` */
};

enum { CONNECTIONS_MAX = 16, TURNS_MAX = 64 };

struct client {
    int    fd;
    char   head[16]; /* the first bytes that came */
    size_t head_size;
};

static struct play {
    struct event_base  *base;
    struct http_server *http;
    struct sockaddr_un  at;
    struct client       clients[CONNECTIONS_MAX + 1]; /* one more: the last question */
    size_t              n;
    struct heard        heard;
    unsigned            flags;
    bool                stopping;
    int                 stopped;
} play;

/* ---- the loop, and what comes back ---- */

static void note_head(struct client *c, const char *data, size_t size)
{
    static const char version[] = "HTTP/";

    while (size > 0 && c->head_size < sizeof c->head - 1)
        c->head[c->head_size++] = *data++, size--;
    assert(strncmp(c->head, version,
                   c->head_size < strlen(version) ? c->head_size : strlen(version)) == 0);
}

static void hear(struct client *c)
{
    static char got[1 << 16];
    ssize_t     n;

    while (c->fd >= 0 && (n = read(c->fd, got, sizeof got)) > 0) {
        note_head(c, got, (size_t)n);
        heard_note(&play.heard, got, (size_t)n);
    }
}

static void turn(void)
{
    for (int i = 0; i < 4; i++) {
        event_base_loop(play.base, EVLOOP_NONBLOCK);
        for (size_t k = 0; k < play.n && !(play.flags & NO_READER); k++)
            hear(&play.clients[k]);
    }
}

/* ---- what clients say ---- */

static struct client *connect_one(void)
{
    struct client *c = &play.clients[play.n++];

    *c = (struct client){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    assert(c->fd >= 0);
    if (connect(c->fd, (struct sockaddr *)&play.at, sizeof play.at) < 0)
        assert(play.stopping);
    return c;
}

static char *fill_length(char *text_take, size_t *size)
{
    static const char word[] = "%LENGTH%";
    char             *at = memmem(text_take, *size, word, strlen(word));
    char             *body = at ? memmem(at, *size - (size_t)(at - text_take), "\n\n", 2) : NULL;
    char              digits[24], *filled;
    size_t            head, tail, n;

    if (!body)
        return text_take;
    n = (size_t)snprintf(digits, sizeof digits, "%zu", *size - (size_t)(body + 2 - text_take));
    head = (size_t)(at - text_take);
    tail = *size - head - strlen(word);
    filled = malloc(head + n + tail);
    memcpy(filled, text_take, head);
    memcpy(filled + head, digits, n);
    memcpy(filled + head + n, at + strlen(word), tail);
    free(text_take);
    *size = head + n + tail;
    return filled;
}

static void say(const struct client *c, const char *text, size_t size)
{
    size_t sent = 0;

    for (int idle = 0; sent < size && idle < TURNS_MAX;) {
        ssize_t n = send(c->fd, text + sent, size - sent, MSG_NOSIGNAL);

        if (n < 0 && errno != EAGAIN)
            return; /* the server has had enough of it */
        idle = n > 0 ? 0 : idle + 1;
        sent += n > 0 ? (size_t)n : 0;
        turn();
    }
}

static void say_piece(const struct client *c, const char *piece, size_t size)
{
    size_t filled_size;
    char  *filled = heard_fill(&play.heard, piece, size, &filled_size);

    filled = fill_length(filled, &filled_size);
    say(c, filled, filled_size);
    free(filled);
}

static void on_stopped(void *owner)
{
    (void)owner;
    play.stopped++;
}

static void stop(void)
{
    if (!play.stopping)
        http_stop(play.http, 0, on_stopped, NULL);
    play.stopping = true;
}

/* The end of a piece; the client that says the next one. */
static struct client *change_client(struct client *c, char how)
{
    if (how == '\x1e')
        return c;
    if (how == '\x1c')
        fd_close(&c->fd);
    if (how == '\x1f')
        shutdown(c->fd, SHUT_WR);
    turn();
    return play.n < CONNECTIONS_MAX ? connect_one() : NULL;
}

static void play_script(const char *data, size_t size)
{
    struct client *c = connect_one();

    while (size > 0 && c) {
        size_t n = 0;

        while (n < size && (data[n] < '\x1c' || data[n] > '\x1f'))
            n++;
        if (n == size && play.flags & STOPS_EARLY)
            stop();
        say_piece(c, data, n);
        turn();
        if (n < size)
            c = change_client(c, data[n++]);
        data += n, size -= n;
    }
}

static void check_alive(void)
{
    static const char question[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct client    *c;

    if (play.stopping)
        return;
    play.flags &= ~(unsigned)NO_READER;
    c = connect_one();
    say(c, question, strlen(question));
    for (int i = 0; i < TURNS_MAX && c->head_size < 12; i++)
        turn();
    assert(strncmp(c->head, "HTTP/1.1 200", 12) == 0);
}

static void close_clients(void)
{
    for (size_t i = 0; i < play.n; i++)
        fd_close(&play.clients[i].fd);
}

static void finish(void)
{
    if (!(play.flags & STAY))
        close_clients();
    if (!(play.flags & FREED))
        stop();
    for (int i = 0; i < TURNS_MAX && !play.stopped && !(play.flags & FREED); i++)
        turn();
    while (!play.stopped && !(play.flags & FREED)) /* a client that does not read costs 200 ms */
        event_base_loop(play.base, EVLOOP_ONCE);
}

/* A file in memory; the path of it. */
static const char *tokens_file(void)
{
    static const char text[] = "a token-a-0123456789\nb token-b-0123456789\n";
    static char       path[32];
    int               fd;

    if (path[0])
        return path;
    fd = memfd_create("tokens", MFD_CLOEXEC);
    assert(fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text, strlen(text)) > 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_base  *base;
    autofree char      *address = str_format("unix:/tmp/fuzz-mcp-http.%d", (int)getpid());
    struct http_options options = {.address = address};
    struct mcp_server  *server;
    struct err          e = {0};

    if (size == 0)
        return 0;
    base = play.base ? play.base : event_base_new();
    play = (struct play){.base = base, .flags = data[0], .at = {.sun_family = AF_UNIX}};
    snprintf(play.at.sun_path, sizeof play.at.sun_path, "%s", address + strlen("unix:"));
    options.tokens_file = play.flags & TOKENS ? tokens_file() : NULL;
    server = fixture_new(base);
    play.http = http_start(server, base, &options, &e);
    assert(play.http);
    play_script((const char *)data + 1, size - 1);
    check_alive();
    finish();
    http_free(play.http);
    mcp_server_free(server);
    close_clients();
    assert(fixture_calls_open() == 0 && play.stopped <= 1);
    assert(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    return 0;
}
