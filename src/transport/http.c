/* Theory of operation. When the head of a request is there it passes the gates in their order (may
 * this page ask, may this person ask, does this method exist); the first that refuses answers, and
 * a body that was to come is not read. Then, with the body, its method runs: POST hands the message
 * to an exchange (post.c), GET attaches a stream of a session, DELETE ends one. Ends of requests
 * only record; the end of the server is decided in `step`. */
#include "transport/http.h"

#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "base/fd.h"
#include "base/str.h"
#include "loop/deadline.h"
#include "loop/later.h"
#include "mcp/exchange.h"
#include "mcp/revision.h"
#include "mcp/rpc.h"
#include "transport/address.h"
#include "transport/connections.h"
#include "transport/http_session.h"
#include "transport/origin.h"
#include "transport/post.h"
#include "transport/reply.h"
#include "transport/token.h"

enum {
    TICK_MS = 1000,
    HEARTBEAT_TICKS = 15,
    LAST_FLUSH_MS = 200, /* for the ends of what was cancelled at the deadline */
};

struct http_server {
    struct mcp_server     *server;
    struct evconnlistener *listener; /* NULL: not yet, or not any more */
    struct address         address;
    char                  *url;
    struct origin_rules    rules;
    char                 **hosts;  /* what rules.hosts points to */
    struct tokens         *tokens; /* NULL: nobody is asked */
    struct principal       anyone; /* who asks then */
    struct connections     connections;
    struct replies         replies;
    struct http_sessions   sessions;
    struct posts           posts;
    struct deadline        tick, stop_time;
    unsigned               ticks;
    struct later           step;
    bool                   stopping;
    bool                   cancelled; /* the deadline of the stop has passed */
    bool                   overdue;   /* and the time for the last bytes too */
    void (*stopped)(void *owner);     /* NULL: nobody asked, or it was told */
    void *owner;
};

struct asked { /* one request on its way through the gates */
    struct http_server     *h;
    struct connection      *c;
    const struct http_head *head;
    struct reply           *reply;
    struct principal       *principal;
    size_t                  size; /* of the body */
};

/* ---- answers of the transport itself ---- */

static void refuse_with(struct asked *a, int status, const json_t *message)
{
    autofree char *text = json_dumps(message, JSON_COMPACT);

    reply_send(a->reply, status, "application/json", text);
}

static void refuse(struct asked *a, int status, int code, const char *why)
{
    autojson json_t *message = rpc_error(NULL, code, why, NULL);

    refuse_with(a, status, message);
}

static void refuse_method(struct asked *a, const char *allowed)
{
    reply_header(a->reply, "Allow", allowed);
    refuse(a, 405, RPC_INVALID_REQUEST, "this method has no meaning here");
}

static const char *header(const struct asked *a, const char *name)
{
    return http_head_find(a->head, name);
}

/* ---- gates: each answers itself when it does not let the request pass ---- */

/* Given twice, a proxy before us may have read the other one. */
static const char *const single[] = {"Host", "Origin", "Authorization",
                                     "Last-Event-ID"}; /* and all of MCP's own */

static bool is_single(const char *name)
{
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (strcasecmp(name, single[i]) == 0)
            return true;
    return strncasecmp(name, "Mcp-", 4) == 0;
}

static bool gate_single(struct asked *a)
{
    for (size_t i = 0; i < a->head->n; i++) {
        const struct http_field *f = &a->head->fields[i];
        if (is_single(f->name) && http_head_find(a->head, f->name) != f->value) {
            connection_set_closes(a->c);
            refuse(a, 400, RPC_INVALID_REQUEST, "a header was given twice");
            return false;
        }
    }
    return true;
}

static bool gate_origin(struct asked *a)
{
    const struct origin_rules *rules = &a->h->rules;
    autofree char             *absolute =
        str_ndup(a->head->authority_size ? a->head->authority : "", a->head->authority_size);

    if (origin_allows_host(rules, header(a, "Host")) &&
        (!*absolute || origin_allows_host(rules, absolute)) &&
        origin_allows(rules, header(a, "Origin")))
        return true;
    refuse(a, 403, RPC_INVALID_REQUEST, "this Host or Origin is not allowed");
    return false;
}

static bool gate_path(struct asked *a)
{
    if (strcmp(a->head->path, "/mcp") == 0)
        return true;
    if (strcmp(a->head->path, "/healthz") == 0)
        reply_send(a->reply, 200, "text/plain", "ok\n");
    else
        refuse(a, 404, RPC_INVALID_REQUEST, "there is only /mcp and /healthz");
    return false;
}

static bool gate_token(struct asked *a)
{
    const char *token;

    a->principal = &a->h->anyone;
    if (!a->h->tokens)
        return true;
    token = token_of_header(header(a, "Authorization"));
    a->principal = token ? tokens_find(a->h->tokens, token) : NULL;
    if (a->principal)
        return true;
    reply_header(a->reply, "WWW-Authenticate",
                 token ? "Bearer realm=\"mcp\", error=\"invalid_token\"" : "Bearer realm=\"mcp\"");
    refuse(a, 401, RPC_INVALID_REQUEST, "a token is needed: Authorization: Bearer TOKEN");
    return false;
}

/* ---- methods ---- */

/* The session that the request names; NULL, and answered, when there is none such. */
static struct http_session *need_session(struct asked *a)
{
    const char          *id = header(a, "Mcp-Session-Id");
    struct http_session *s = id ? http_session_find(&a->h->sessions, id, a->principal) : NULL;

    if (!id)
        refuse(a, 400, RPC_INVALID_REQUEST,
               "the header Mcp-Session-Id is missing: begin with initialize, or send _meta with "
               "io.modelcontextprotocol/protocolVersion on each request");
    else if (!s)
        refuse(a, 404, RPC_INVALID_REQUEST, "there is no such session: initialize a new one");
    return s;
}

static bool is_initialize(const json_t *message)
{
    return rpc_count_requests(message) == 1 && json_is_object(message) &&
           strcmp(rpc_string(message, "method"), "initialize") == 0;
}

/* Of the oldest revision there is only stdio here: its HTTP was another. */
static bool gate_version(struct asked *a)
{
    const char                *version = header(a, "MCP-Protocol-Version");
    const struct mcp_revision *named = version ? mcp_revision_find(version) : NULL;

    if (!named || named->has_http)
        return true;
    refuse(a, 400, RPC_INVALID_REQUEST, "this protocol version is not spoken over HTTP");
    return false;
}

/* NULL, and answered, when there are too many: of this one, or of all. */
static struct http_session *new_session(struct asked *a)
{
    struct http_session *s = http_session_new(&a->h->sessions, a->principal);

    if (!s)
        refuse(a, principal_has_all_sessions(a->principal) ? 429 : 503, RPC_INTERNAL_ERROR,
               "there are too many sessions: end one with DELETE");
    return s;
}

static void post_legacy(struct asked *a, json_t *message, size_t requests)
{
    struct http_session *s = is_initialize(message) ? new_session(a) : need_session(a);

    if (s && requests > 0 && s->open > 0 && s->open + requests > HTTP_SESSION_REQUESTS_MAX)
        refuse(a, 429, RPC_INTERNAL_ERROR, "too many requests of this session are open");
    else if (s)
        post_start(&a->h->posts, a->reply, message, a->size, s, a->principal);
}

static void do_post(struct asked *a)
{
    const char      *text = connection_body(a->c, &a->size);
    autojson json_t *refusal = NULL;
    autojson json_t *message = rpc_read(text, a->size, &refusal);
    size_t           requests = rpc_count_requests(message);

    if (!message) {
        refuse_with(a, 400, refusal);
    } else if (a->h->stopping && requests > 0) {
        connection_set_closes(a->c);
        refuse(a, 503, RPC_INTERNAL_ERROR, "this server is about to stop");
    } else if (requests > 0 && principal_is_busy(a->principal, requests, a->size)) {
        refuse(a, 429, RPC_INTERNAL_ERROR, "too many requests are open: wait for one");
    } else if (mcp_is_modern(message, header(a, "MCP-Protocol-Version"))) {
        post_start(&a->h->posts, a->reply, message, a->size, NULL, a->principal);
    } else {
        post_legacy(a, message, requests);
    }
}

static void resume(struct asked *a, struct http_session *s, const char *last_id)
{
    unsigned            number;
    uint64_t            seq;
    struct http_stream *stream = NULL;

    if (sse_parse_id(last_id, &number, &seq) == 0)
        stream = http_session_find_stream(s, number);
    if (!stream || !sse_can_replay(&stream->sse, seq)) {
        refuse(a, 400, RPC_INVALID_REQUEST,
               "what came after this Last-Event-ID is forgotten: ask anew");
        return;
    }
    if (stream->sse.ended && seq == stream->sse.last) { /* of a cancelled request, for example */
        refuse_method(a, "POST"); /* the official client takes this for the end; not an empty 200 */
        return;
    }
    reply_stream(a->reply, &stream->sse, NULL, NULL);
    sse_replay(&stream->sse, seq);
}

static void listen_alone(struct asked *a, struct http_session *s)
{
    struct http_stream *stream = http_session_standalone(s);

    if (stream->sse.sink) { /* two would throw each other off; who lost his comes with an id */
        refuse(a, 409, RPC_INVALID_REQUEST, "this session has such a stream already");
        return;
    }
    reply_stream(a->reply, &stream->sse, NULL, NULL);
    http_session_prime(s, &stream->sse);
}

/* GET and DELETE are legacy: its dates, or none. */
static bool gate_legacy(struct asked *a)
{
    const char                *version = header(a, "MCP-Protocol-Version");
    const struct mcp_revision *named = version ? mcp_revision_find(version) : NULL;

    if (!header(a, "Mcp-Session-Id")) {
        refuse_method(a, "POST");
        return false;
    }
    if (!version || (named && !named->stateless))
        return true;
    refuse(a, 400, RPC_INVALID_REQUEST, "this protocol version has no GET or DELETE");
    return false;
}

static void do_get(struct asked *a)
{
    const char          *accept = header(a, "Accept"), *last_id = header(a, "Last-Event-ID");
    struct http_session *s;

    if (!gate_legacy(a))
        return;
    if (!accept || !strcasestr(accept, "text/event-stream")) {
        refuse(a, 406, RPC_INVALID_REQUEST, "GET is for Accept: text/event-stream");
    } else if (a->h->stopping) {
        connection_set_closes(a->c);
        refuse(a, 503, RPC_INTERNAL_ERROR, "this server is about to stop");
    } else if ((s = need_session(a))) {
        if (last_id)
            resume(a, s, last_id);
        else
            listen_alone(a, s);
    }
}

static void do_delete(struct asked *a)
{
    struct http_session *s;

    if (gate_legacy(a) && (s = need_session(a))) {
        http_session_free(&a->h->sessions, s);
        reply_send(a->reply, 204, NULL, NULL);
    }
}

static const struct {
    const char *name;
    void (*run)(struct asked *a);
} methods[] = {{"POST", do_post}, {"GET", do_get}, {"DELETE", do_delete}, {0}};

static bool gate_method(struct asked *a)
{
    for (size_t i = 0; methods[i].name; i++)
        if (strcmp(methods[i].name, a->head->method) == 0)
            return true;
    refuse_method(a, "GET, POST, DELETE");
    return false;
}

/* ---- what connections tell ---- */

static bool on_head(void *owner, struct connection *c)
{
    static bool (*const gates[])(struct asked *) = {gate_single, gate_origin, gate_path,
                                                    gate_token,  gate_method, gate_version};
    struct http_server *h = owner;
    struct asked        a = {.h = h, .c = c, .head = connection_head(c)};

    a.reply = reply_new(&h->replies, c);
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        if (!gates[i](&a))
            return false;
    reply_free(a.reply);
    connection_set_note(c, a.principal);
    return true;
}

static void on_request(void *owner, struct connection *c)
{
    struct http_server *h = owner;
    struct asked a = {.h = h, .c = c, .head = connection_head(c), .principal = connection_note(c)};

    a.reply = reply_new(&h->replies, c);
    for (size_t i = 0; methods[i].name; i++)
        if (strcmp(methods[i].name, a.head->method) == 0) {
            methods[i].run(&a);
            return; /* the head is gone */
        }
}

static void on_bad_request(void *owner, struct connection *c, int status, const char *why)
{
    struct http_server *h = owner;
    struct asked        a = {.h = h, .c = c, .reply = reply_new(&h->replies, c)};

    refuse(&a, status, RPC_INVALID_REQUEST, why);
}

static void on_quiet(void *owner)
{
    struct http_server *h = owner;

    if (h->stopped)
        later_ask(&h->step);
}

static const struct connection_ops connection_ops = {
    .head = on_head, .request = on_request, .refuse = on_bad_request, .quiet = on_quiet};

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
                      int from_size, void *arg)
{
    struct http_server *h = arg;

    (void)listener;
    (void)from;
    (void)from_size;
    connections_add(&h->connections, fd);
}

/* ---- time ---- */

/* No descriptor is free. Without a pause the loop would spin on the connection that waits; the next
 * tick tries again. */
static void on_accept_error(struct evconnlistener *listener, void *arg)
{
    (void)arg;
    evconnlistener_disable(listener);
}

static void on_tick(void *owner)
{
    struct http_server *h = owner;

    if (h->listener)
        evconnlistener_enable(h->listener);
    connections_tick(&h->connections);
    if (++h->ticks % HEARTBEAT_TICKS == 0) {
        replies_heartbeat(&h->replies);
        http_sessions_expire(&h->sessions);
    }
    deadline_set(&h->tick, TICK_MS);
}

/* ---- stopping ---- */

static void cancel_all(struct http_server *h)
{
    posts_cancel(&h->posts);
    http_sessions_done(&h->sessions);
}

static void on_stop_time(void *owner)
{
    struct http_server *h = owner;

    if (!h->cancelled) {
        h->cancelled = true;
        mcp_server_give_up(h->server);
        cancel_all(h);
        deadline_set(&h->stop_time, LAST_FLUSH_MS);
    } else {
        h->overdue = true;
    }
    later_ask(&h->step);
}

static void step(void *owner)
{
    struct http_server *h = owner;
    void (*stopped)(void *) = h->stopped;

    if (!stopped ||
        (!h->overdue && (!LIST_EMPTY(&h->posts.open) || connections_are_busy(&h->connections))))
        return;
    h->stopped = NULL;
    stopped(h->owner);
}

static void close_listener(struct http_server *h)
{
    if (!h->listener)
        return;
    address_unlink(&h->address); /* first: an open socket keeps its inode's number from others */
    evconnlistener_free(h->listener);
    h->listener = NULL;
}

void http_stop(struct http_server *h, int64_t deadline_ms, void (*stopped)(void *owner),
               void *owner)
{
    if (h->stopping)
        return;
    h->stopping = true;
    h->stopped = stopped;
    h->owner = owner;
    close_listener(h);
    mcp_server_stop(h->server);
    http_sessions_end_gets(&h->sessions);
    deadline_set(&h->stop_time, deadline_ms);
    later_ask(&h->step);
}

void http_free(struct http_server *h)
{
    if (!h)
        return;
    h->stopped = NULL;
    close_listener(h);
    cancel_all(h);
    connections_done(&h->connections);
    replies_done(&h->replies);
    deadline_done(&h->tick);
    deadline_done(&h->stop_time);
    later_done(&h->step);
    tokens_free(h->tokens);
    for (size_t i = 0; h->hosts[i]; i++)
        free(h->hosts[i]);
    free(h->hosts);
    free(h->url);
    free(h);
}

/* ---- starting ---- */

static void raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static char **copy_names(const char *const *names)
{
    size_t n = 0;
    char **copy;

    while (names && names[n])
        n++;
    copy = calloc(n + 1, sizeof *copy);
    if (!copy)
        abort();
    for (size_t i = 0; i < n; i++)
        copy[i] = str_dup(names[i]);
    return copy;
}

static struct http_server *server_new(struct mcp_server *s, struct event_base *base,
                                      const struct http_options *o)
{
    struct http_server *h = calloc(1, sizeof *h);

    if (!h)
        abort();
    h->server = s;
    h->hosts = copy_names(o->hosts);
    h->rules.hosts = (const char *const *)h->hosts;
    http_sessions_init(&h->sessions, s);
    h->posts =
        (struct posts){.server = s, .sessions = &h->sessions, .emptied = on_quiet, .owner = h};
    connections_init(&h->connections, base, o->request_ms, &connection_ops, h);
    replies_init(&h->replies);
    deadline_init(&h->tick, base, on_tick, h);
    deadline_init(&h->stop_time, base, on_stop_time, h);
    later_init(&h->step, base, step, h);
    return h;
}

static int server_listen(struct http_server *h, struct event_base *base, struct err *e)
{
    int fd = address_listen(&h->address, e);

    if (fd < 0)
        return -1;
    h->listener = evconnlistener_new(base, on_accept, h,
                                     LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!h->listener)
        abort();
    evconnlistener_set_error_cb(h->listener, on_accept_error);
    h->url = address_url(&h->address);
    deadline_set(&h->tick, TICK_MS);
    return 0;
}

static int server_open(struct http_server *h, struct event_base *base, const struct http_options *o,
                       struct err *e)
{
    TRY(address_parse(o->address, &h->address, e));
    h->rules.local_only = h->address.is_local;
    if (!h->address.is_local && !o->tokens_file && !o->insecure)
        return err_set(e, ERR_INVALID,
                       "%.80s can be reached from other machines: give a file of tokens, or say "
                       "that it shall be insecure",
                       o->address);
    if (o->tokens_file && !(h->tokens = tokens_load(o->tokens_file, e)))
        return -1;
    return server_listen(h, base, e);
}

struct http_server *http_start(struct mcp_server *s, struct event_base *base,
                               const struct http_options *o, struct err *e)
{
    struct http_server *h;

    raise_descriptor_limit();
    h = server_new(s, base, o);
    if (server_open(h, base, o, e) == 0)
        return h;
    http_free(h);
    return NULL;
}

const struct connection_counts *http_counts(const struct http_server *h)
{
    return &h->connections.counts;
}

const char *http_url(const struct http_server *h)
{
    return h->url;
}
