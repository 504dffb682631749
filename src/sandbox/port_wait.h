/* port_wait - waits until something listens on a port inside a sandbox. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/sandbox.h"

struct port_wait;

/* Asks init again and again until the port inside answers. done is called once, from the loop,
 * never after cancel; false: not within the time, or the sandbox ended. */
struct port_wait *port_wait_start(struct sandbox *s, uint16_t inside_port, int64_t timeout_ms,
                                  void (*done)(void *owner, bool answered), void *owner);
void              port_wait_cancel(struct port_wait *w); /* frees it */
