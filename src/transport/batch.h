/* batch - an array of messages, as the revisions up to 2025-03-26 know it: all answers in one
 * array, when the last is there.
 *
 * The ops are those of an exchange: `send` for what belongs to any of its requests, `finish` once
 * (maybe inside batch_start), with the array, or with NULL and 202 when no answer is due. Freeing
 * the session ends it, as all its requests end then. */
#pragma once

#include <stdbool.h>

#include "mcp/exchange.h"

bool batch_is_known(const struct mcp_session *session); /* to the revision it speaks; NULL: no */
void batch_start(const struct mcp_origin *from, json_t *messages,
                 const struct mcp_exchange_ops *ops, void *owner);
