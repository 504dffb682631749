#include "transport/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "transport/connections.h"
#include "transport/stdio.h"

/* With what comes after it, two seconds: so long official clients wait before they kill. */
enum { STOP_MS = 1000 };

static const int ends[] = {SIGTERM, SIGINT, SIGUSR2, SIGHUP};
enum { ENDS = sizeof ends / sizeof *ends };

struct serving {
    struct event_base  *base;
    struct stdio       *stdio;
    struct http_server *http;
    int                 open; /* of these two */
    bool                stopping;
    int64_t             stop_ms;
};

static void on_over(void *owner);

static void stop(struct serving *v)
{
    v->stopping = true;
    if (v->stdio)
        stdio_stop(v->stdio, v->stop_ms);
    if (v->http)
        http_stop(v->http, v->stop_ms, on_over, v);
}

/* One of them has ended, by itself or because it was told: then the other has to. */
static void on_over(void *owner)
{
    struct serving *v = owner;

    if (--v->open == 0)
        event_base_loopbreak(v->base);
    else if (!v->stopping)
        stop(v);
}

static void on_signal(evutil_socket_t number, short what, void *owner)
{
    struct serving *v = owner;

    (void)number;
    (void)what;
    if (v->stopping)
        event_base_loopbreak(v->base);
    else
        stop(v);
}

/* Who starts us with nohup wants us to outlive his terminal. */
static bool is_ignored(int number)
{
    struct sigaction now;

    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

int serve_check_descriptors(const struct serve_options *o, struct err *e)
{
    bool can_talk = is_open(STDIN_FILENO) && is_open(STDOUT_FILENO);
    int  fd;

    while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
        ;
    close(fd);
    if (o->stdio && !can_talk)
        return err_set(e, ERR_INVALID, "serving stdio needs an open standard input and output");
    return 0;
}

static int start(struct serving *v, struct mcp_server *s, const struct serve_options *o,
                 struct err *e)
{
    if (o->http.address) {
        v->http = http_start(s, v->base, &o->http, e);
        if (!v->http)
            return -1;
        v->open++;
        fprintf(stderr, "listening on %s\n", http_url(v->http));
    }
    if (o->stdio) {
        v->stdio = stdio_start(s, v->base, STDIN_FILENO, STDOUT_FILENO, on_over, v);
        v->open++;
    }
    return 0;
}

/* Said once, at the end: a server in trouble has better things to do. */
static void tell_counts(const struct connection_counts *n)
{
    if (n->crowded + n->heavy + n->slow > 0)
        fprintf(stderr, "refused: %zu connections, %zu for their bytes, %zu for their time\n",
                n->crowded, n->heavy, n->slow);
}

int serve_run(struct mcp_server *s, struct event_base *base, const struct serve_options *o,
              struct err *e)
{
    struct serving v = {.base = base, .stop_ms = o->stop_ms > 0 ? o->stop_ms : STOP_MS};
    struct event  *signals[ENDS] = {0};
    int            r = 0;

    signal(SIGPIPE, SIG_IGN); /* nobody may read our stderr any more */
    for (size_t i = 0; i < ENDS && r == 0; i++) {
        if (ends[i] == SIGHUP && is_ignored(SIGHUP))
            continue;
        signals[i] = evsignal_new(base, ends[i], on_signal, &v);
        if (!signals[i] || event_add(signals[i], NULL) < 0)
            r = err_sys(e, "watch for signal %d", ends[i]);
    }
    if (r == 0)
        r = start(&v, s, o, e);
    if (r == 0)
        event_base_dispatch(base);
    if (v.http)
        tell_counts(http_counts(v.http));
    if (r == 0 && v.stdio && stdio_lost_answers(v.stdio))
        r = err_set(e, ERR_UNAVAILABLE, "the client did not read all answers");
    stdio_free(v.stdio);
    http_free(v.http);
    for (size_t i = 0; i < ENDS; i++)
        if (signals[i])
            event_free(signals[i]);
    return r;
}
