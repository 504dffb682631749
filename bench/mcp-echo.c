/* mcp-echo - what a line of JSON costs at the least: a bare libevent echo on stdio that parses each
 * line as base/json does and writes it back in compact form, all that one read brought in one
 * write. The measure for our stdio transport. It blocks when nobody reads: the client must. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"

struct echo {
    struct event_base *base;
    struct evbuffer   *in, *out;
};

static void echo_line(struct evbuffer *out, const char *line, size_t size)
{
    struct err       e;
    autojson json_t *message = json_parse(line, size, &e);
    autofree char   *text = message ? json_dumps(message, JSON_COMPACT) : NULL;

    if (!text)
        abort();
    evbuffer_add(out, text, strlen(text));
    evbuffer_add(out, "\n", 1);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct echo *e = arg;
    size_t       size;
    char        *line;

    (void)what;
    if (evbuffer_read(e->in, fd, -1) <= 0)
        event_base_loopbreak(e->base);
    while ((line = evbuffer_readln(e->in, &size, EVBUFFER_EOL_LF))) {
        echo_line(e->out, line, size);
        free(line);
    }
    while (evbuffer_get_length(e->out) > 0)
        if (evbuffer_write(e->out, STDOUT_FILENO) < 0)
            abort();
}

int main(void)
{
    struct echo   e = {event_base_new(), evbuffer_new(), evbuffer_new()};
    struct event *readable = event_new(e.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_readable, &e);

    event_add(readable, NULL);
    event_base_dispatch(e.base);
    event_free(readable);
    evbuffer_free(e.in);
    evbuffer_free(e.out);
    event_base_free(e.base);
    return 0;
}
