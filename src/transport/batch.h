/* batch - an array of messages, as the revisions up to 2025-03-26 know it: all answers in one
 * array, when the last is there.
 *
 * The ops are those of an exchange: `send` for what belongs to any of its requests, `finish` once
 * (maybe inside batch_start), with the array, or with NULL and 202 when no answer is due. Freeing
 * the session ends it, as all its requests end then. */
#pragma once

#include "mcp/exchange.h"

void batch_start(const struct mcp_origin *from, json_t *messages,
                 const struct mcp_exchange_ops *ops, void *owner);
