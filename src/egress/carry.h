/* carry - one connection to the outside, made for code in a sandbox, or to it: bytes out, bytes in,
 * with credit in both directions.
 *
 * Addresses are tried in their order until one answers. Nothing is read from outside before there
 * is credit for it, and credit for what goes out is given back when the kernel took it: a slow
 * reader on either side holds a window here, never more. The ops are called from the top of the
 * loop; only `over` may free it. */
#pragma once

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "egress/ip.h"
#include "egress/meter.h"

struct carry;

struct carry_ops {
    bool (*connected)(void *owner, const struct ip *address); /* false: it must not be, see over */
    void (*data)(void *owner, const uint8_t *bytes, size_t size); /* within the credit */
    void (*ended)(void *owner);                                   /* the outside says no more */
    void (*sent)(void *owner, size_t bytes);
    bool (*has_room)(void *owner); /* for data; else carry_go_on comes */
    /* ERR_NONE: both sides have ended. Else it was reset, silent for too long, or never made. */
    void (*over)(void *owner, const struct err *e);
};

struct carry_spec {
    const struct ip *addresses; /* copied */
    size_t           n;
    uint16_t         port;
    uint32_t         credit; /* at the beginning */
    int64_t          idle_ms;
    struct meter    *meter; /* or NULL: as fast as it goes */
};

struct carry *carry_new(struct event_base *base, const struct carry_spec *spec,
                        const struct carry_ops *ops, void *owner);
/* One that exists: somebody from outside connected to us. Takes fd, non-blocking; of the spec no
 * address and no port; `connected` is not called. */
struct carry *carry_adopt(struct event_base *base, int fd, const struct carry_spec *spec,
                          const struct carry_ops *ops, void *owner);
void          carry_free(struct carry *c);

int  carry_write(struct carry *c, const void *bytes, size_t size); /* -1: over the window */
void carry_end(struct carry *c);
void carry_credit(struct carry *c, uint32_t bytes);
void carry_go_on(struct carry *c); /* the meter has been filled, or there is room again */
bool carry_is_sending(const struct carry *c);
