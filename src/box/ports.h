/* ports - the ports of one box that appear on this machine's loopback, and which of those are ours.
 *
 * A port inside appears under its own number if that is free; if another box of ours has it, under
 * the next free one; if a foreign program has it, not at all: who asked for 3000 and got another
 * program's answers would look long. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sandbox/port.h"

enum { PORTS_MAX = 16 };

struct port_set { /* of this machine, held by boxes of this server */
    uint8_t bits[65536 / 8];
};

struct ports { /* of one box; zeros to begin with */
    struct {
        uint16_t     inside;
        struct port *port;
    } rows[PORTS_MAX];
    size_t n;
};

/* A port that is published already stays as it is. */
int  ports_publish(struct ports *p, struct port_set *ours, struct sandbox *s, uint16_t inside,
                   uint16_t *ret_host, struct err *e);
void ports_close(struct ports *p, struct port_set *ours);
