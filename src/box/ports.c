#include "box/ports.h"

#include <errno.h>

enum { TRIES = 1000 };

static bool is_ours(const struct port_set *ours, uint16_t number)
{
    return ours->bits[number / 8] & 1U << number % 8;
}

static void mark(struct port_set *ours, uint16_t number)
{
    ours->bits[number / 8] |= (uint8_t)(1U << number % 8);
}

static void unmark(struct port_set *ours, uint16_t number)
{
    ours->bits[number / 8] &= (uint8_t) ~(1U << number % 8);
}

static struct port *open_near(const struct port_set *ours, struct sandbox *s, uint16_t inside,
                              struct err *e)
{
    bool passed_ours = false;

    for (uint32_t n = inside; n < (uint32_t)inside + TRIES && n <= UINT16_MAX; n++) {
        struct port *port =
            is_ours(ours, (uint16_t)n) ? NULL : port_open(s, (uint16_t)n, inside, e);
        if (port)
            return port;
        if (!is_ours(ours, (uint16_t)n) && (!passed_ours || e->sys != EADDRINUSE))
            break;
        passed_ours = true;
        *e = (struct err){0};
    }
    if (!e->kind || e->sys == EADDRINUSE)
        err_set(e, ERR_UNAVAILABLE, "port %u of this machine is in use by another program", inside);
    return NULL;
}

int ports_publish(struct ports *p, struct port_set *ours, struct sandbox *s, uint16_t inside,
                  uint16_t *ret_host, struct err *e)
{
    struct port *port;

    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i].inside == inside) {
            *ret_host = port_number(p->rows[i].port);
            return 0;
        }
    if (p->n == PORTS_MAX)
        return err_set(e, ERR_LIMIT, "a sandbox has at most %d ports", PORTS_MAX);
    port = open_near(ours, s, inside, e);
    if (!port)
        return -1;
    p->rows[p->n].inside = inside;
    p->rows[p->n++].port = port;
    *ret_host = port_number(port);
    mark(ours, *ret_host);
    return 0;
}

void ports_close(struct ports *p, struct port_set *ours)
{
    while (p->n > 0) {
        struct port *port = p->rows[--p->n].port;
        unmark(ours, port_number(port));
        port_close(port);
    }
}
