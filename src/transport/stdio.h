/* stdio - MCP on a pair of pipes: one line a message, both ways, nothing else on the output.
 *
 * One legacy session for the process; modern messages beside it. Memory is bounded whatever the
 * peer does: while too much waits to be read by it we take no further input (the pipe fills, the
 * writer waits); a request too many is refused, since what ends the others is input, too. */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "mcp/server.h"

struct stdio;

/* Takes the descriptors. `ended` is called once, from the top of the loop, when the input has ended
 * or stdio_stop was called (open requests are cancelled, what is queued was written; a client that
 * reads nothing for a second has lost it) or the output broke; stdio_free is still due, and may be
 * called inside it. */
struct stdio *stdio_start(struct mcp_server *s, struct event_base *base, int in_fd, int out_fd,
                          void (*ended)(void *owner), void *owner);

/* New requests are refused; listen streams are ended; the other requests finish, or are given up
 * after deadline_ms, and their clients told so; what is queued is written. Then `ended`. A second
 * call changes nothing. */
void stdio_stop(struct stdio *t, int64_t deadline_ms);
/* Once it has ended: what was written went nowhere, because the client did not read it. */
bool stdio_lost_answers(const struct stdio *t);
/* At once: cancels what runs, drops what is queued; not `ended`. Not inside a handler of the server
 * (a tool, a resource, a prompt). */
void stdio_free(struct stdio *t);
