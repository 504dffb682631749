/* port - a port of this machine's loopback that leads to a port inside a sandbox.
 *
 * Each connection is carried through the pipe, whatever is spoken on it: bytes, half closes,
 * resets. One to a port inside on which nobody listens is reset at once. A slow reader on either
 * side stops the other; nothing here holds more than a window of it. When the sandbox ends, its
 * connections are reset and nobody listens here any more; the owner still closes the port. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "sandbox/port_wait.h"
#include "sandbox/sandbox.h"

struct port;

/* Listens on 127.0.0.1:host_port (0: any free one). e->sys is EADDRINUSE when it is taken. */
struct port *port_open(struct sandbox *s, uint16_t host_port, uint16_t inside_port, struct err *e);
uint16_t     port_number(const struct port *p);
void port_close(struct port *p); /* listener and connections; also after the sandbox ended */
