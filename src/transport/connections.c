/* Theory of operation. Each connection adds what its buffers take to the sums of all, and asks here
 * when one of these has grown.
 *
 * Over the bytes of requests that come, the one that grew is refused; from half of them on, what is
 * pipelined is not read any more. Over the bytes of answers, those are cut off that do not read, as
 * many as it takes. Over the number, whoever comes is refused; and every second those go whose time
 * is over.
 *
 * Whoever dies is freed by the sweep alone, from the top of the loop: so everybody else may go on
 * to use a connection that has just died, and to walk through the list. */
#include "transport/connections.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "transport/connection_private.h"

enum { MUCH = 256 << 10 }; /* waits to be read, where all together are too much */

/* ---- their bytes ---- */

void connections_bound_input(struct connection *c)
{
    if (c->all->input <= c->all->input_max || !connection_is_receiving(c))
        return;
    c->all->counts.heavy++;
    connection_turn_away(c, 503, "too many large requests at once: try again later");
}

/* What is pipelined can wait with its client, and must not take the place of requests that come. */
bool connections_can_wait(const struct connection *c)
{
    return c->state == ANSWERING && c->all->input > c->all->input_max / 2;
}

/* Of those for whom much waits, the one for whom it waits longest; if there is none, the heaviest.
 * So it is not who happens to be answered next, and reads. */
static struct connection *find_slowest(const struct connections *all)
{
    struct connection *slowest = NULL, *heaviest = LIST_FIRST(&all->open);

    for (struct connection *c = heaviest; c; c = LIST_NEXT(c, entry)) {
        if (c->out.room >= MUCH && (!slowest || c->waits_since_ms <= slowest->waits_since_ms))
            slowest = c;
        if (c->out.room > heaviest->out.room)
            heaviest = c;
    }
    return slowest ? slowest : heaviest;
}

void connections_bound_output(struct connections *all)
{
    while (all->output > all->output_max) {
        struct connection *c = find_slowest(all);
        all->counts.heavy += c->state != DEAD;
        connection_cut_off(c);
    }
}

/* ---- their time ---- */

/* While a request comes and nothing waits to be read, only the request's time counts. */
static bool is_late(const struct connection *c, int64_t now)
{
    if (c->state == DEAD)
        return false;
    if (c->request_due_ms && c->request_due_ms <= now)
        return true;
    return c->due_ms && c->due_ms <= now && (c->request_due_ms == 0 || connection_unread(c) > 0);
}

static void end_late(struct connection *c)
{
    if (!connection_is_receiving(c) || connection_unread(c) > 0) {
        connection_die(c);
        return;
    }
    c->all->counts.slow++;
    connection_turn_away(c, 408, "a request must be complete within its time");
}

void connections_tick(struct connections *all)
{
    struct connection *c;
    int64_t            now = clock_ms();

    LIST_FOREACH (c, &all->open, entry)
        if (is_late(c, now))
            end_late(c);
}

/* ---- the sweep ---- */

static void forget(struct connection *c)
{
    LIST_REMOVE(c, entry);
    c->all->n--;
    connection_free(c);
}

void connections_ask_sweep(struct connection *c)
{
    if (!c->works)
        SLIST_INSERT_HEAD(&c->all->work, c, work_entry);
    c->works = true;
    later_ask(&c->all->sweep);
}

static void sweep(void *owner)
{
    struct connections *all = owner;
    struct connection  *c;

    while ((c = SLIST_FIRST(&all->work))) {
        SLIST_REMOVE_HEAD(&all->work, work_entry);
        c->works = false;
        if (c->state != DEAD) {
            connection_take_requests(c);
            continue;
        }
        if (c->gone)
            c->gone(c->gone_arg);
        forget(c);
        all->ops->quiet(all->owner);
    }
}

/* ---- all of them ---- */

static size_t most_connections(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 * 3 > CONNECTIONS_MAX)
        return CONNECTIONS_MAX;
    return limit.rlim_cur / 4 * 3;
}

void connections_init(struct connections *all, struct event_base *base, int64_t request_ms,
                      const struct connection_ops *ops, void *owner)
{
    *all = (struct connections){
        .base = base,
        .max = most_connections(),
        .input_max = CONNECTIONS_INPUT_MAX,
        .output_max = CONNECTIONS_OUTPUT_MAX,
        .request_ms = request_ms > 0 ? request_ms : CONNECTION_REQUEST_MS,
        .read = malloc(CONNECTION_READ),
        .ops = ops,
        .owner = owner,
    };
    if (!all->read)
        abort();
    later_init(&all->sweep, base, sweep, all);
}

void connections_done(struct connections *all)
{
    struct connection *c;

    while ((c = LIST_FIRST(&all->open)))
        forget(c);
    SLIST_INIT(&all->work);
    later_done(&all->sweep);
    free(all->read);
}

void connections_add(struct connections *all, int fd_take)
{
    static const char  crowded[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
                                   "Retry-After: 1\r\nContent-Length: 0\r\n\r\n";
    struct connection *c;

    if (all->n >= all->max) {
        all->counts.crowded++;
        send(fd_take, crowded, strlen(crowded), MSG_NOSIGNAL | MSG_DONTWAIT);
        fd_close(&fd_take);
        return;
    }
    c = connection_new(all, fd_take);
    LIST_INSERT_HEAD(&all->open, c, entry);
    all->n++;
}

bool connections_are_busy(const struct connections *all)
{
    const struct connection *c;

    LIST_FOREACH (c, &all->open, entry)
        if (c->state != DEAD && (c->state == ANSWERING || connection_unread(c) > 0))
            return true;
    return false;
}
