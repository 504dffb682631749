/* outputs - whole outputs of runs whose answer shows only a part of them: resources, output://ID.
 *
 * The newest are kept, by number and by bytes; who may read one is who made it. */
#pragma once

#include <event2/event.h>

#include "mcp/call.h"
#include "sandbox/keep.h"

struct outputs;

enum { OUTPUTS_MAX = 64, OUTPUT_URI_MAX = sizeof "output://" + 32 };
#define OUTPUTS_BYTES_MAX (512LL << 20)

struct outputs *outputs_new(void);
void            outputs_free(struct outputs *o);

void outputs_add(struct outputs *o, const char *owner, struct keep *k,
                 char ret_uri[OUTPUT_URI_MAX]);

void outputs_read(struct mcp_call *c); /* resources/read of output://{id} */
void outputs_list(const struct outputs *o, const char *owner, struct mcp_call *c);
