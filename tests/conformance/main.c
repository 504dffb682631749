/* conformance-server - everything of MCP that the official suite knows, on stdio or on HTTP. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/options.h"
#include "fixture.h"
#include "transport/http.h"
#include "transport/stdio.h"

enum { STOP_MS = 2000 };

struct settings {
    const char *http, *tokens;
    bool        stdio, insecure;
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
};

static void leave(void *owner)
{
    struct program *p = owner;

    event_base_loopbreak(p->fixture.base);
}

static void on_signal(evutil_socket_t signal_number, short what, void *owner)
{
    struct program *p = owner;

    (void)signal_number;
    (void)what;
    if (p->http)
        http_stop(p->http, STOP_MS, leave, p);
    else
        leave(p);
}

static int serve_http(struct program *p, const struct settings *s, struct err *e)
{
    const struct http_options o = {
        .address = s->http, .tokens_file = s->tokens, .insecure = s->insecure};

    p->http = http_start(p->fixture.server, p->fixture.base, &o, e);
    if (!p->http)
        return -1;
    fprintf(stderr, "listening on %s\n", http_url(p->http));
    return 0;
}

static int serve(const struct settings *s, struct err *e)
{
    struct event_base *base = event_base_new();
    struct program     p = {.fixture.base = base};
    struct event      *ends[] = {evsignal_new(base, SIGTERM, on_signal, &p),
                                 evsignal_new(base, SIGINT, on_signal, &p)};
    int                r = 0;

    p.fixture.server = mcp_server_new(base, &about, &p.fixture);
    mcp_server_add_tools(p.fixture.server, plain_tools);
    mcp_server_add_tools(p.fixture.server, asking_tools);
    mcp_server_add_tools(p.fixture.server, task_tools);
    mcp_server_add_resources(p.fixture.server, resources);
    mcp_server_add_prompts(p.fixture.server, prompts);
    event_add(ends[0], NULL);
    event_add(ends[1], NULL);

    if (s->http)
        r = serve_http(&p, s, e);
    if (r == 0 && s->stdio)
        p.stdio = stdio_start(p.fixture.server, base, STDIN_FILENO, STDOUT_FILENO, leave, &p);
    if (r == 0)
        event_base_dispatch(base);

    if (p.stdio)
        stdio_stop(p.stdio);
    if (p.http)
        http_free(p.http);
    mcp_server_free(p.fixture.server);
    event_free(ends[0]);
    event_free(ends[1]);
    event_base_free(base);
    return r;
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
    if (serve(&s, &e) < 0) {
        fprintf(stderr, "conformance-server: %s\n", e.msg);
        return 1;
    }
    return 0;
}
