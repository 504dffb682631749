/* mcp-fixture - what the MCP targets serve: one tool of each kind, resources, a prompt.
 *
 * No handler waits for longer than a turn of the loop, so that a target reaches every state without
 * sleeping; `hang` waits until it is cancelled. Every call is counted, so that a target can assert
 * that none was forgotten. */
#pragma once

#include <stddef.h>

#include "mcp/server.h"

struct mcp_server *fixture_new(struct event_base *base);
int                fixture_calls_open(void); /* of all servers so far */

/* Ids and states that a server hands out are random: an input cannot know them. It says %STATE%,
 * %TASK% or %SESSION% instead, and gets what was last heard. */
struct heard {
    char state[4096], task[64], session[64];
};

void  heard_note(struct heard *h, const char *text, size_t size); /* looks at what a server sent */
char *heard_fill(const struct heard *h, const char *text, size_t size,
                 size_t *ret_size); /* NUL-ended; the caller frees */
