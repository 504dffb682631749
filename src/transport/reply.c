#include "transport/reply.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    HEADERS_MAX = 4 << 10,   /* those of one answer */
    TOGETHER_MAX = 32 << 10, /* what is larger goes out by itself, uncopied */
    SCRATCH_MAX = HEADERS_MAX + TOGETHER_MAX + 1024,
};

struct reply {
    LIST_ENTRY(reply) entry; /* among the streams */
    struct replies    *all;
    struct connection *c;
    struct buf         headers;
    bool               chunked;
    struct sse        *events; /* NULL: it is no stream */
    void (*lost)(void *owner);
    void *owner;
};

static const struct {
    int         status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {202, "Accepted"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

/* ---- all of them ---- */

void replies_init(struct replies *all)
{
    *all = (struct replies){.date_s = -1};
    buf_init(&all->scratch, SCRATCH_MAX);
}

void reply_free(struct reply *r)
{
    if (r->events)
        LIST_REMOVE(r, entry);
    buf_done(&r->headers);
    free(r);
}

void replies_done(struct replies *all)
{
    struct reply *r;

    while ((r = LIST_FIRST(&all->streams)))
        reply_free(r);
    buf_done(&all->scratch);
}

/* Made anew once a second. */
static const char *date_of(struct replies *all)
{
    time_t    now = time(NULL);
    struct tm parts;

    if (now != all->date_s) {
        all->date_s = now;
        gmtime_r(&now, &parts);
        strftime(all->date, sizeof all->date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    }
    return all->date;
}

/* ---- one ---- */

struct reply *reply_new(struct replies *all, struct connection *c)
{
    struct reply *r = calloc(1, sizeof *r);

    if (!r)
        abort();
    r->all = all;
    r->c = c;
    buf_init(&r->headers, HEADERS_MAX);
    return r;
}

const char *reply_request_header(const struct reply *r, const char *name)
{
    return http_head_find(connection_head(r->c), name);
}

void reply_header(struct reply *r, const char *name, const char *value)
{
    if (buf_printf(&r->headers, "%s: %s\r\n", name, value) < 0)
        abort(); /* they are ours, and few */
}

static bool is_1_0(const struct reply *r)
{
    const struct http_head *head = connection_head(r->c);

    return head && head->is_1_0;
}

/* Head up to its own headers, into the scratch. */
static void begin(struct reply *r, int status)
{
    struct buf *out = &r->all->scratch;

    out->size = 0;
    buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, reason_of(status), date_of(r->all));
    if (connection_closes(r->c))
        buf_printf(out, "Connection: close\r\n");
    else if (is_1_0(r))
        buf_printf(out, "Connection: keep-alive\r\n");
    buf_add(out, r->headers.data, r->headers.size);
}

static void write_scratch(struct reply *r)
{
    struct buf *out = &r->all->scratch;

    connection_write(r->c, out->data, out->size);
    out->size = 0;
}

/* Content, after what is in the scratch. */
static void add(struct reply *r, const void *data, size_t size)
{
    if (size <= TOGETHER_MAX) {
        buf_add(&r->all->scratch, data, size);
    } else {
        write_scratch(r);
        connection_write(r->c, data, size);
    }
}

void reply_send(struct reply *r, int status, const char *type, const char *body)
{
    const struct http_head *head = connection_head(r->c);
    struct buf             *out = &r->all->scratch;
    size_t                  size = body ? strlen(body) : 0;

    begin(r, status);
    if (body)
        buf_printf(out, "Content-Type: %s\r\n", type);
    if (status != 204)
        buf_printf(out, "Content-Length: %zu\r\n", size);
    buf_add(out, "\r\n", 2);
    if (size > 0 && !(head && strcmp(head->method, "HEAD") == 0))
        add(r, body, size);
    write_scratch(r);
    connection_answered(r->c);
    reply_free(r);
}

/* ---- streams ---- */

static void write_to(struct reply *r, const void *data, size_t size)
{
    struct buf *out = &r->all->scratch;

    out->size = 0;
    if (r->chunked)
        buf_printf(out, "%zx\r\n", size);
    add(r, data, size);
    if (r->chunked)
        buf_add(out, "\r\n", 2);
    write_scratch(r);
}

static void on_event(void *owner, const void *data, size_t size)
{
    write_to(owner, data, size);
}

static void on_events_end(void *owner)
{
    static const char last[] = "0\r\n\r\n";
    struct reply     *r = owner;

    if (r->chunked)
        connection_write(r->c, last, strlen(last));
    connection_answered(r->c);
    reply_free(r);
}

static const struct sse_sink sink = {.write = on_event, .end = on_events_end};

static void on_gone(void *arg)
{
    struct reply *r = arg;

    sse_detach(r->events);
    if (r->lost)
        r->lost(r->owner);
    reply_free(r);
}

void reply_stream(struct reply *r, struct sse *events, void (*lost)(void *owner), void *owner)
{
    r->events = events;
    r->lost = lost;
    r->owner = owner;
    r->chunked = !is_1_0(r);
    if (!r->chunked)
        connection_set_closes(r->c); /* that is the end of its stream */
    LIST_INSERT_HEAD(&r->all->streams, r, entry);
    reply_header(r, "Content-Type", "text/event-stream");
    reply_header(r, "Cache-Control", "no-cache");
    reply_header(r, "X-Accel-Buffering", "no");
    if (r->chunked)
        reply_header(r, "Transfer-Encoding", "chunked");
    begin(r, 200);
    buf_add(&r->all->scratch, "\r\n", 2);
    write_scratch(r);
    buf_done(&r->headers);
    connection_watch(r->c, on_gone, r);
    sse_attach(events, &sink, r);
}

void replies_heartbeat(struct replies *all)
{
    static const char comment[] = ":\n\n";

    for (struct reply *r = LIST_FIRST(&all->streams); r; r = LIST_NEXT(r, entry))
        write_to(r, comment, strlen(comment));
}
