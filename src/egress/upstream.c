/* Theory of operation. Servers are asked in their order, by UDP with EDNS, then all of them once
 * more without it, for those that do not know it. `try_next` is the only way on: it closes what is
 * open and asks the next one, or ends the query. Whoever finds that a server is of no use asks for
 * it by a deadline of zero, so that it never runs inside of an event of the socket it closes. */
#include "egress/upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/random.h"
#include "loop/deadline.h"

enum {
    SERVERS_MAX = 3,
    ROUNDS = 2,
    TRY_MS = 2000,
    CONF_MAX = 65536,
    DATAGRAM = 1232, /* what we say we take: it passes everywhere in one piece */
};

struct upstream {
    struct event_base *base;
    const char        *path;
    struct timespec    read_at; /* its time of change when it was read */
    struct ip          servers[SERVERS_MAX];
    size_t             n;
};

struct upstream_query {
    struct upstream   *u;
    uint8_t            query[DNS_QUESTION_MAX]; /* with an id of ours */
    size_t             size;                    /* without EDNS */
    uint8_t            id[2];                   /* the asker's */
    struct ip          server;
    unsigned           tries;
    int                fd;
    struct event      *event;
    struct buf         in;    /* of TCP: a length, then as many bytes */
    struct buf         spare; /* an answer that is better than none */
    struct deadline    deadline;
    upstream_answered *answered;
    void              *owner;
};

/* ---- servers ---- */

static void parse_conf(struct upstream *u, char *text)
{
    static const char word[] = "nameserver", blanks[] = " \t\r";
    char             *line, *save = NULL;

    u->n = 0;
    for (char *rest = text; (line = strtok_r(rest, "\n", &save)); rest = NULL) {
        char *fields = NULL, *first = strtok_r(line, blanks, &fields),
             *second = strtok_r(NULL, blanks, &fields);
        if (first && second && strcmp(first, word) == 0 && u->n < SERVERS_MAX &&
            ip_parse(second, &u->servers[u->n]) == 0)
            u->n++;
    }
}

/* As libc does: what changed counts from the next query on; without any, this machine is asked. */
static void refresh(struct upstream *u)
{
    autofd int     fd = open(u->path, O_RDONLY | O_CLOEXEC);
    autofree char *text = NULL;
    struct stat    st = {0};
    size_t         size;

    if (fd >= 0 && fstat(fd, &st) == 0 && u->n > 0 && st.st_mtim.tv_sec == u->read_at.tv_sec &&
        st.st_mtim.tv_nsec == u->read_at.tv_nsec)
        return;
    if (fd >= 0 && fd_read_text(fd, CONF_MAX, &text, &size, NULL) == 0)
        parse_conf(u, text);
    u->read_at = st.st_mtim;
    if (u->n == 0)
        u->servers[u->n++] = ip_from_v4((uint8_t[]){127, 0, 0, 1});
}

struct upstream *upstream_new(struct event_base *base, const char *resolv_conf)
{
    struct upstream *u = calloc(1, sizeof *u);

    if (!u)
        abort();
    u->base = base;
    u->path = resolv_conf;
    return u;
}

void upstream_free(struct upstream *u)
{
    free(u);
}

/* ---- queries ---- */

static void close_socket(struct upstream_query *q)
{
    if (q->event)
        event_free(q->event);
    q->event = NULL;
    fd_close(&q->fd);
    buf_drop(&q->in, q->in.size);
}

void upstream_cancel(struct upstream_query *q)
{
    close_socket(q);
    deadline_done(&q->deadline);
    buf_done(&q->in);
    buf_done(&q->spare);
    free(q);
}

/* `answer` may be one of the query's own buffers, which therefore live longer than it. */
static void finish(struct upstream_query *q, uint8_t *answer, size_t size)
{
    upstream_answered *answered = q->answered;
    void              *owner = q->owner;
    struct buf         in = q->in, spare = q->spare;

    if (answer)
        memcpy(answer, q->id, 2);
    q->in = q->spare = (struct buf){0};
    upstream_cancel(q);
    answered(owner, answer, size);
    buf_done(&in);
    buf_done(&spare);
}

static void go_on(struct upstream_query *q)
{
    event_del(q->event);
    deadline_set(&q->deadline, 0);
}

static void keep_spare(struct upstream_query *q, const uint8_t *answer, size_t size)
{
    if (q->spare.size > 0 && dns_code(answer) != DNS_OK)
        return;
    buf_drop(&q->spare, q->spare.size);
    buf_add(&q->spare, answer, size);
}

static void listen_for(struct upstream_query *q, short what, event_callback_fn callback)
{
    if (q->event)
        event_free(q->event);
    q->event = event_new(q->u->base, q->fd, (short)(what | EV_PERSIST), callback, q);
    if (!q->event)
        abort();
    if (event_add(q->event, NULL) < 0)
        deadline_set(&q->deadline, 0); /* nobody would hear of an answer */
}

/* -1: nobody can be reached there. */
static int open_socket(struct upstream_query *q, int type)
{
    struct sockaddr_storage to;
    socklen_t               size = ip_to_sockaddr(&q->server, DNS_PORT, &to);

    q->fd = socket(to.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (q->fd < 0 || (connect(q->fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS))
        return -1;
    return 0;
}

/* The query as it is asked now: in the first round with EDNS. */
static size_t compose(struct upstream_query *q, uint8_t ret[DNS_QUESTION_MAX + DNS_EDNS])
{
    memcpy(ret, q->query, q->size);
    return q->tries <= q->u->n ? dns_add_edns(ret, q->size, DATAGRAM) : q->size;
}

/* ---- by TCP ---- */

static void on_stream_readable(evutil_socket_t fd, short what, void *arg)
{
    struct upstream_query *q = arg;
    uint8_t                bytes[4096];
    ssize_t                n = recv(fd, bytes, sizeof bytes, 0);
    size_t                 size;

    (void)what;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || buf_add(&q->in, bytes, (size_t)n) < 0) {
        go_on(q);
        return;
    }
    size = q->in.size < 2 ? SIZE_MAX : 2 + ((size_t)q->in.data[0] << 8 | q->in.data[1]);
    if (q->in.size < size)
        return;
    if (!dns_fits(q->query, q->size, q->in.data + 2, size - 2) ||
        !dns_is_settled(dns_code(q->in.data + 2)))
        go_on(q);
    else
        finish(q, q->in.data + 2, size - 2);
}

static void on_stream_writable(evutil_socket_t fd, short what, void *arg)
{
    struct upstream_query *q = arg;
    uint8_t                bytes[2 + DNS_QUESTION_MAX + DNS_EDNS];
    size_t                 size = compose(q, bytes + 2);

    (void)what;
    bytes[0] = (uint8_t)(size >> 8), bytes[1] = (uint8_t)size;
    if (send(fd, bytes, 2 + size, MSG_NOSIGNAL) != (ssize_t)(2 + size))
        go_on(q); /* not even connected: a new socket takes as little as this at once */
    else
        listen_for(q, EV_READ, on_stream_readable);
}

static void ask_by_stream(struct upstream_query *q)
{
    close_socket(q);
    deadline_set(&q->deadline, TRY_MS);
    if (open_socket(q, SOCK_STREAM) < 0)
        deadline_set(&q->deadline, 0);
    else
        listen_for(q, EV_WRITE, on_stream_writable);
}

/* ---- by UDP ---- */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct upstream_query *q = arg;
    uint8_t                answer[DNS_MESSAGE_MAX];
    ssize_t                n = recv(fd, answer, sizeof answer, 0);

    (void)what;
    if (n < 0) { /* nobody listens there: the next one, soon */
        go_on(q);
        return;
    }
    if (!dns_fits(q->query, q->size, answer, (size_t)n))
        return;
    if (dns_is_settled(dns_code(answer)) && !dns_is_truncated(answer)) {
        finish(q, answer, (size_t)n);
        return;
    }
    keep_spare(q, answer, (size_t)n);
    if (dns_is_settled(dns_code(answer)))
        ask_by_stream(q);
    else
        go_on(q);
}

static void ask_by_datagram(struct upstream_query *q)
{
    uint8_t bytes[DNS_QUESTION_MAX + DNS_EDNS];
    size_t  size = compose(q, bytes);

    deadline_set(&q->deadline, TRY_MS);
    if (open_socket(q, SOCK_DGRAM) < 0 || send(q->fd, bytes, size, 0) < 0)
        deadline_set(&q->deadline, 0);
    else
        listen_for(q, EV_READ, on_readable);
}

static void try_next(void *owner)
{
    struct upstream_query *q = owner;

    close_socket(q);
    if (q->tries >= q->u->n * ROUNDS) { /* there may be fewer servers than before */
        finish(q, q->spare.size > 0 ? q->spare.data : NULL, q->spare.size);
        return;
    }
    q->server = q->u->servers[q->tries++ % q->u->n];
    random_bytes(q->query, 2);
    ask_by_datagram(q);
}

struct upstream_query *upstream_ask(struct upstream *u, const uint8_t *query, size_t size,
                                    upstream_answered *answered, void *owner)
{
    struct upstream_query *q = calloc(1, sizeof *q);

    if (!q || size < 2 || size > DNS_QUESTION_MAX)
        abort();
    refresh(u);
    *q = (struct upstream_query){
        .u = u, .size = size, .fd = -1, .answered = answered, .owner = owner};
    memcpy(q->query, query, size);
    memcpy(q->id, query, 2);
    buf_init(&q->in, 2 + DNS_ANSWER_MAX + 4096);
    buf_init(&q->spare, DNS_MESSAGE_MAX);
    deadline_init(&q->deadline, u->base, try_next, q);
    deadline_set(&q->deadline, 0);
    return q;
}
