#include "egress/upstream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"
#include "loop/deadline.h"

enum { SERVERS_MAX = 3, ROUNDS = 2, TRY_MS = 2000, CONF_MAX = 65536, DNS_PORT = 53 };

struct upstream {
    struct event_base *base;
    const char        *path;
    struct timespec    read_at; /* its time of change when it was read */
    struct ip          servers[SERVERS_MAX];
    size_t             n;
};

struct upstream_query {
    struct upstream   *u;
    uint8_t            query[DNS_MESSAGE_MAX]; /* with an id of ours */
    size_t             size;
    uint8_t            id[2]; /* the asker's */
    unsigned           tries;
    int                fd;
    struct event      *readable;
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
    if (q->readable)
        event_free(q->readable);
    q->readable = NULL;
    fd_close(&q->fd);
}

void upstream_cancel(struct upstream_query *q)
{
    close_socket(q);
    deadline_done(&q->deadline);
    free(q);
}

static void finish(struct upstream_query *q, const uint8_t *answer, size_t size)
{
    upstream_answered *answered = q->answered;
    void              *owner = q->owner;

    upstream_cancel(q);
    answered(owner, answer, size);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    struct upstream_query *q = arg;
    uint8_t                answer[DNS_MESSAGE_MAX];
    ssize_t                n = recv(fd, answer, sizeof answer, 0);

    (void)what;
    if (n < 0) { /* nobody listens there: the next one, soon */
        deadline_set(&q->deadline, 0);
        event_del(q->readable);
        return;
    }
    if (!dns_fits(q->query, q->size, answer, (size_t)n))
        return;
    memcpy(answer, q->id, 2);
    finish(q, answer, (size_t)n);
}

static void send_to(struct upstream_query *q, const struct ip *server)
{
    struct sockaddr_storage to;
    socklen_t               size = ip_to_sockaddr(server, DNS_PORT, &to);

    q->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (q->fd < 0 || connect(q->fd, (struct sockaddr *)&to, size) < 0 ||
        send(q->fd, q->query, q->size, 0) < 0) {
        deadline_set(&q->deadline, 0);
        return;
    }
    q->readable = event_new(q->u->base, q->fd, EV_READ | EV_PERSIST, on_readable, q);
    if (!q->readable)
        abort();
    event_add(q->readable, NULL);
    deadline_set(&q->deadline, TRY_MS);
}

static void try_next(void *owner)
{
    struct upstream_query *q = owner;

    close_socket(q);
    if (q->tries >= q->u->n * ROUNDS) { /* there may be fewer servers than before */
        finish(q, NULL, 0);
        return;
    }
    random_bytes(q->query, 2);
    send_to(q, &q->u->servers[q->tries++ % q->u->n]);
}

struct upstream_query *upstream_ask(struct upstream *u, const uint8_t *query, size_t size,
                                    upstream_answered *answered, void *owner)
{
    struct upstream_query *q = calloc(1, sizeof *q);

    if (!q || size < 2 || size > sizeof q->query)
        abort();
    refresh(u);
    *q = (struct upstream_query){
        .u = u, .size = size, .fd = -1, .answered = answered, .owner = owner};
    memcpy(q->query, query, size);
    memcpy(q->id, query, 2);
    deadline_init(&q->deadline, u->base, try_next, q);
    deadline_set(&q->deadline, 0);
    return q;
}
