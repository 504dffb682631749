/* outputs - whole outputs of runs whose answer shows only a part of them: resources, output://ID.
 *
 * The newest are kept, by number and by bytes; who may read one is who made it. A read gives 4 MiB
 * at most, so that nobody waits for it: output://ID/FROM goes on from that byte. Parts that begin
 * at multiples of 4 MiB are together all of it, byte by byte. */
#pragma once

#include <event2/event.h>

#include "mcp/call.h"
#include "sandbox/keep.h"

struct outputs;

enum { OUTPUTS_MAX = 64, OUTPUTS_PART = 4 << 20, OUTPUT_URI_MAX = sizeof "output://" + 32 };
#define OUTPUTS_BYTES_MAX (512LL << 20)

struct outputs *outputs_new(void);
void            outputs_free(struct outputs *o);

void outputs_add(struct outputs *o, const char *owner, struct keep *k,
                 char ret_uri[OUTPUT_URI_MAX]);

void outputs_drop_owner(struct outputs *o, const char *owner); /* he is gone for good */

void outputs_read(struct mcp_call *c); /* resources/read of output://{id} and …/{from} */
void outputs_list(const struct outputs *o, const char *owner, struct mcp_call *c);
