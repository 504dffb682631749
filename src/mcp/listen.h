/* listen - subscriptions/listen of the modern era: a request that stays open and gets what it asked
 * for. It has no deadline: its client ends it by leaving, the server by stopping. */
#pragma once

#include "base/json.h"
#include "mcp/server.h"

enum listen_kind { LISTEN_TOOLS, LISTEN_PROMPTS, LISTEN_RESOURCES, LISTEN_KINDS };

/* `principal`: only his, or NULL. */
void listen_tell(struct mcp_server *s, const char *principal, enum listen_kind kind,
                 const char *method);
void listen_subscriptions(const struct mcp_server *s, mcp_each_subscription *each, void *data);
void listen_tell_updated(struct mcp_server *s, const char *principal, const char *uri);
void listen_tell_task(struct mcp_server *s, const char *principal, const char *task_id,
                      json_t *task_take);
void listen_end_all(struct mcp_server *s);
