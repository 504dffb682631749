/* conformance-server - everything of MCP that the official suite knows, on stdio or on HTTP. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/options.h"
#include "fixture.h"
#include "transport/connection.h"
#include "transport/http.h"
#include "transport/stdio.h"

enum { STOP_MS = 2000 };

struct settings {
    const char *http, *tokens;
    bool        stdio, insecure;
    int64_t     request_ms;
};

static const struct option options[] = {
    {"http", 0, OPTION_STRING, offsetof(struct settings, http), "[HOST:]PORT",
     "serve http://HOST:PORT/mcp; port 0 is any free one"},
    {"stdio", 0, OPTION_FLAG, offsetof(struct settings, stdio), NULL,
     "serve standard input and output"},
    {"tokens", 0, OPTION_STRING, offsetof(struct settings, tokens), "FILE",
     "who may ask over HTTP: lines of NAME TOKEN"},
    {"insecure", 0, OPTION_FLAG, offsetof(struct settings, insecure), NULL,
     "serve other machines even without tokens"},
    {"request-time", 0, OPTION_DURATION, offsetof(struct settings, request_ms), "TIME",
     "for an HTTP request to arrive: a minute by default"},
    {0},
};

static const struct mcp_about about = {
    .name = "conformance-server",
    .title = "Conformance server",
    .version = "1.0.0",
    .instructions = "A server for tests: each tool shows one feature of the protocol.",
};

struct program {
    struct fixture      fixture;
    struct stdio       *stdio;
    struct http_server *http;
    int                 served; /* of these two */
    bool                stopping;
};

static void on_over(void *owner);

/* Both are told, and have STOP_MS; who insists ends us at once. */
static void stop(struct program *p)
{
    p->stopping = true;
    if (p->stdio)
        stdio_stop(p->stdio, STOP_MS);
    if (p->http)
        http_stop(p->http, STOP_MS, on_over, p);
}

/* One of them has ended, by itself or because it was told: then the other has to. */
static void on_over(void *owner)
{
    struct program *p = owner;

    if (--p->served == 0)
        event_base_loopbreak(p->fixture.base);
    else if (!p->stopping)
        stop(p);
}

static void on_signal(evutil_socket_t signal_number, short what, void *owner)
{
    struct program *p = owner;

    (void)signal_number;
    (void)what;
    if (p->stopping)
        event_base_loopbreak(p->fixture.base);
    else
        stop(p);
}

static int serve_http(struct program *p, const struct settings *s, struct err *e)
{
    const struct http_options o = {.address = s->http,
                                   .tokens_file = s->tokens,
                                   .insecure = s->insecure,
                                   .request_ms = s->request_ms};

    p->http = http_start(p->fixture.server, p->fixture.base, &o, e);
    if (!p->http)
        return -1;
    p->served++;
    fprintf(stderr, "listening on %s\n", http_url(p->http));
    return 0;
}

static void serve_stdio(struct program *p)
{
    p->stdio =
        stdio_start(p->fixture.server, p->fixture.base, STDIN_FILENO, STDOUT_FILENO, on_over, p);
    p->served++;
}

/* Said once, at the end: a library does not log. */
static void tell_counts(const struct http_server *h)
{
    const struct connection_counts *n = http_counts(h);

    if (n->crowded + n->heavy + n->slow > 0)
        fprintf(stderr, "refused: %zu connections, %zu for their bytes, %zu for their time\n",
                n->crowded, n->heavy, n->slow);
}

static void add_tools(struct mcp_server *s, const struct mcp_tool *rows)
{
    for (; rows->name; rows++)
        mcp_server_add_tool(s, rows);
}

static int serve(const struct settings *s, struct err *e)
{
    struct event_base *base = event_base_new();
    struct program     p = {.fixture.base = base};
    struct event      *ends[] = {evsignal_new(base, SIGTERM, on_signal, &p),
                                 evsignal_new(base, SIGINT, on_signal, &p)};
    int                r = 0;

    p.fixture.server = mcp_server_new(base, &about, &p.fixture);
    add_tools(p.fixture.server, plain_tools);
    add_tools(p.fixture.server, asking_tools);
    add_tools(p.fixture.server, task_tools);
    for (const struct mcp_resource *row = resources; row->name; row++)
        mcp_server_add_resource(p.fixture.server, row);
    for (const struct mcp_prompt *row = prompts; row->name; row++)
        mcp_server_add_prompt(p.fixture.server, row);
    event_add(ends[0], NULL);
    event_add(ends[1], NULL);

    if (s->http)
        r = serve_http(&p, s, e);
    if (r == 0 && s->stdio)
        serve_stdio(&p);
    if (r == 0)
        event_base_dispatch(base);

    stdio_free(p.stdio);
    if (p.http)
        tell_counts(p.http);
    http_free(p.http);
    mcp_server_free(p.fixture.server);
    event_free(ends[0]);
    event_free(ends[1]);
    event_base_free(base);
    return r;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* A closed standard descriptor would become one of ours: a socket that answers are printed to. */
static int check_descriptors(const struct settings *s, struct err *e)
{
    bool can_talk = is_open(STDIN_FILENO) && is_open(STDOUT_FILENO);
    int  fd;

    while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
        ;
    close(fd);
    if (s->stdio && !can_talk)
        return err_set(e, ERR_INVALID, "--stdio needs an open standard input and output");
    return 0;
}

int main(int argc, char **argv)
{
    struct settings s = {0};
    struct err      e = {0};
    int             used;

    if (options_from_args(options, &s, argc - 1, argv + 1, &used, &e) < 0 || used != argc - 1 ||
        (!s.http && !s.stdio)) {
        fprintf(stderr, "conformance-server: %s\n", e.kind ? e.msg : "--http or --stdio");
        options_print_help(options);
        return 2;
    }
    if (check_descriptors(&s, &e) < 0 || serve(&s, &e) < 0) {
        fprintf(stderr, "conformance-server: %s\n", e.msg);
        return 1;
    }
    return 0;
}
