/* conformance-server - everything of MCP that the official suite knows, on stdio or on HTTP. */
#include <stdio.h>

#include "base/options.h"
#include "fixture.h"
#include "transport/serve.h"

#define AT(member) offsetof(struct serve_options, member)
static const struct option options[] = {
    {"http", 0, OPTION_STRING, AT(http.address), "[HOST:]PORT",
     "serve http://HOST:PORT/mcp; port 0 is any free one"},
    {"stdio", 0, OPTION_FLAG, AT(stdio), NULL, "serve standard input and output"},
    {"tokens", 0, OPTION_STRING, AT(http.tokens_file), "FILE",
     "who may ask over HTTP: lines of NAME TOKEN"},
    {"insecure", 0, OPTION_FLAG, AT(http.insecure), NULL,
     "serve other machines even without tokens"},
    {"request-time", 0, OPTION_DURATION, AT(http.request_ms), "TIME",
     "for an HTTP request to arrive: a minute by default"},
    {"stop-time", 0, OPTION_DURATION, AT(stop_ms), "TIME",
     "for requests that run when it stops: a second by default"},
    {0},
};

static const struct mcp_about about = {
    .name = "conformance-server",
    .title = "Conformance server",
    .version = "1.0.0",
    .instructions = "A server for tests: each tool shows one feature of the protocol.",
};

static int serve(const struct serve_options *o, struct err *e)
{
    struct event_base *base = event_base_new();
    struct fixture     f;
    int                r;

    f.server = mcp_server_new(base, &about, &f);
    mcp_server_add_tools(f.server, plain_tools);
    mcp_server_add_tools(f.server, asking_tools);
    mcp_server_add_tools(f.server, task_tools);
    mcp_server_add_resources(f.server, resources);
    mcp_server_set_resource_lister(f.server, list_by_id);
    mcp_server_add_prompts(f.server, prompts);
    r = serve_run(f.server, base, o, e);
    mcp_server_free(f.server);
    event_base_free(base);
    return r;
}

int main(int argc, char **argv)
{
    struct serve_options o = {0};
    struct err           e = {0};
    int                  used;

    if (options_from_args(options, &o, argc - 1, argv + 1, &used, &e) < 0 || used != argc - 1 ||
        (!o.http.address && !o.stdio)) {
        fprintf(stderr, "conformance-server: %s\n", e.kind ? e.msg : "--http or --stdio");
        options_print_help(options);
        return 2;
    }
    if (serve_check_descriptors(&o, &e) < 0 || serve(&o, &e) < 0) {
        fprintf(stderr, "conformance-server: %s\n", e.msg);
        return 1;
    }
    return 0;
}
