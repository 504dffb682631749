/* fuzz-mcp-line - bytes as a client might send them on stdio, through the real transport.
 *
 * The first byte of an input says how the client behaves (enum below); the rest is what it sends, a
 * line at a time. See mcp-fixture.h for %STATE% and %TASK%.
 *
 * Asserted: each line that comes back is one JSON-RPC message, or an array of them; after whatever
 * was sent, a ping on a line of its own is answered; the transport ends once when the input has
 * ended; no call is forgotten, and nothing stays on the loop. And of rpc_read, line by line: it
 * takes what json_parse takes; what it refuses has an id only if it stands in the line. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "mcp-fixture.h"
#include "mcp/rpc.h"
#include "transport/stdio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    AT_ONCE = 1,   /* as much as fits, not a line at a time */
    NO_READER = 2, /* it reads nothing */
    LEAVES = 4,    /* closes everything after the last byte */
    FREED = 8,     /* the transport is freed before it has seen the end of the input */
};

enum { TURNS_MAX = 64, HEARD_MAX = 1 << 24 };

static struct play {
    struct event_base *base;
    struct stdio      *stdio;
    int                fd; /* the client's end */
    struct buf         got;
    struct heard       heard;
    unsigned           flags;
    int                ended;
    bool               answered; /* the last ping */
} play;

static void on_ended(void *owner)
{
    (void)owner;
    play.ended++;
}

/* ---- what the server says ---- */

static void check_message(const json_t *m)
{
    const char *version = json_string_value(json_object_get(m, "jsonrpc"));
    const char *id = json_string_value(json_object_get(m, "id"));

    assert(json_is_object(m) && version && strcmp(version, "2.0") == 0);
    assert(json_object_get(m, "method") || json_object_get(m, "result") ||
           json_object_get(m, "error"));
    if (id && strcmp(id, "the last") == 0)
        play.answered = true;
}

static void hear_line(const char *line, size_t size)
{
    /* an id may have had \u0000 in it, and comes back as it was */
    json_t *j = json_loadb(line, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL), *m;
    size_t  i;

    assert(j);
    if (json_is_array(j)) {
        assert(json_array_size(j) > 0);
        json_array_foreach (j, i, m) {
            check_message(m);
        }
    } else {
        check_message(j);
    }
    json_decref(j);
    heard_note(&play.heard, line, size);
}

static void hear(void)
{
    ssize_t     n;
    const char *end;

    while (!(play.flags & NO_READER) && play.fd >= 0 &&
           (n = read(play.fd, buf_reserve(&play.got, 1 << 16), 1 << 16)) > 0)
        play.got.size += (size_t)n;
    while (play.got.size > 0 && (end = memchr(play.got.data, '\n', play.got.size))) {
        size_t length = (size_t)(end - (char *)play.got.data);
        hear_line((char *)play.got.data, length);
        buf_drop(&play.got, length + 1);
    }
}

/* Enough for the longest chain of the fixture's turns. */
static void turn(void)
{
    for (int i = 0; i < 4; i++) {
        event_base_loop(play.base, EVLOOP_NONBLOCK);
        hear();
    }
}

/* ---- what the client says ---- */

static void say(const char *text, size_t size)
{
    size_t sent = 0;

    for (int idle = 0; sent < size && idle < TURNS_MAX;) {
        ssize_t n = write(play.fd, text + sent, size - sent);

        if (n < 0 && errno != EAGAIN)
            return; /* the server has had enough of it */
        idle = n > 0 ? 0 : idle + 1;
        sent += n > 0 ? (size_t)n : 0;
        turn();
    }
}

static void say_lines(const char *data, size_t size)
{
    while (size > 0) {
        const char *end = play.flags & AT_ONCE ? NULL : memchr(data, '\n', size);
        size_t      n = end ? (size_t)(end - data) + 1 : size, filled_size;
        char       *filled = heard_fill(&play.heard, data, n, &filled_size);

        say(filled, filled_size);
        free(filled);
        data += n, size -= n;
    }
}

static void check_alive(void)
{
    static const char ping[] = "\n{\"jsonrpc\":\"2.0\",\"id\":\"the last\",\"method\":\"ping\"}\n";

    if (play.ended) /* only a client that does not read is given up */
        assert(play.flags & NO_READER);
    say(ping, strlen(ping));
    for (int i = 0; i < TURNS_MAX && !play.answered; i++)
        turn();
    assert(play.answered || play.flags & NO_READER);
}

static void finish(void)
{
    if (play.flags & LEAVES)
        fd_close(&play.fd);
    else
        shutdown(play.fd, SHUT_WR);
    for (int i = 0; i < TURNS_MAX && !play.ended && !(play.flags & FREED); i++)
        turn();
    assert(play.ended == 1 || play.flags & (FREED | NO_READER));
}

/* ---- reading alone ---- */

static void check_read(const char *line, size_t size)
{
    json_t          *refusal = NULL;
    autojson json_t *message = rpc_read(line, size, &refusal), *same = json_parse(line, size, NULL);
    const json_t    *id = json_object_get(refusal, "id");
    json_int_t       code =
        json_integer_value(json_object_get(json_object_get(refusal, "error"), "code"));

    assert(!message == !same && !message == !!refusal && json_equal(message, same) == !!same);
    assert(message || code == RPC_PARSE_ERROR || code == RPC_INVALID_REQUEST);
    assert(!id || (code == RPC_INVALID_REQUEST && memmem(line, size, "\"id\"", 4) &&
                   memmem(line, size, "\"method\"", 8)));
    if (json_is_integer(id)) {
        autofree char *text = json_dumps(id, JSON_ENCODE_ANY);
        assert(memmem(line, size, text, strlen(text)) || strcmp(text, "0") == 0); /* -0 */
    }
    json_decref(refusal);
}

static void check_reads(const char *data, size_t size)
{
    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        size_t      n = end ? (size_t)(end - data) : size;

        check_read(data, n);
        data += n + !!end, size -= n + !!end;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event_base *base;
    struct mcp_server *server;
    int                ends[2];

    if (size == 0)
        return 0;
    check_reads((const char *)data + 1, size - 1);
    base = play.base ? play.base : event_base_new();
    play = (struct play){.base = base, .flags = data[0]};
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    play.fd = ends[1];
    buf_init(&play.got, HEARD_MAX);
    server = fixture_new(base);
    play.stdio = stdio_start(server, base, ends[0], ends[0], on_ended, NULL);
    say_lines((const char *)data + 1, size - 1);
    check_alive();
    finish();
    stdio_free(play.stdio);
    mcp_server_free(server);
    assert(fixture_calls_open() == 0 && play.ended <= 1);
    assert(event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0);
    fd_close(&play.fd);
    buf_done(&play.got);
    return 0;
}
