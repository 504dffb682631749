/* serve - a server's whole life: on stdio, on HTTP, or on both, until its input ends or a signal
 * comes.
 *
 * SIGTERM, SIGINT, SIGUSR2 and SIGHUP (unless it is ignored: nohup) stop it gracefully: no new
 * requests, those that run have a second; a second signal ends it at once. The end of stdio's input
 * stops HTTP too. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>

#include "base/err.h"
#include "mcp/server.h"
#include "transport/http.h"

struct serve_options {
    bool                stdio;
    struct http_options http;    /* without an address: none */
    int64_t             stop_ms; /* for requests that run when it stops; 0: a second */
};

/* Before anything else is opened: a standard descriptor that is closed would become one of ours, a
 * socket that answers are printed to. */
int serve_check_descriptors(const struct serve_options *o, struct err *e);

/* Blocks. Where HTTP listens is told on stderr. */
int serve_run(struct mcp_server *s, struct event_base *base, const struct serve_options *o,
              struct err *e);
