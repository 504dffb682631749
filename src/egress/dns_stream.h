/* dns_stream - a TCP connection to port 53, which is not carried out: its queries are lookups like
 * any other, and their answers may be larger than a datagram.
 *
 * It has the face of a carry (egress/carry.h) and calls the same ops, but for `connected`: the
 * outside of such a connection is here. Queries are answered one after the other, so it holds one
 * window of queries and one answer. */
#pragma once

#include "egress/carry.h"
#include "egress/egress_private.h"

struct dns_stream;

struct dns_stream *dns_stream_new(struct egress *e, uint32_t credit, const struct carry_ops *ops,
                                  void *owner);
void               dns_stream_free(struct dns_stream *s);

int  dns_stream_write(struct dns_stream *s, const void *bytes, size_t size); /* -1: as of carry */
void dns_stream_end(struct dns_stream *s);
void dns_stream_credit(struct dns_stream *s, uint32_t bytes);
void dns_stream_go_on(struct dns_stream *s);
