/* session - the state of the legacy era: what was negotiated, levels, subscriptions, and requests
 * of ours that wait for the client's answer. One a process on stdio, one an Mcp-Session-Id on HTTP.
 */
#pragma once

#include "mcp/exchange.h"
#include "mcp/request.h"
#include "mcp/revision.h"
#include "mcp/rpc.h"

const struct mcp_revision *session_revision(const struct mcp_session *s);
const json_t              *session_capabilities(const struct mcp_session *s);
int                        session_log_level(const struct mcp_session *s);
const char                *session_owner(const struct mcp_session *s); /* "session:ID" */
void                       session_set_ready(struct mcp_session *s);
struct requests           *session_requests(struct mcp_session *s); /* open ones, of both eras */

/* A request to the client, sent on the stream of x. The answer is handed to `answered` under its
 * key, once: the result, or NULL when the client refused. session_forget drops what x still waits
 * for. */
typedef void session_answered(void *owner, const char *key, const json_t *result);
void session_ask(struct mcp_session *s, struct mcp_exchange *x, const char *key, const char *method,
                 json_t *params_take, session_answered *answered, void *owner);
void session_forget(struct mcp_session *s, const struct mcp_exchange *x);
void session_take_response(struct mcp_session *s, const struct rpc *rpc);

/* To all sessions that are ready; of one principal, if it is not NULL. */
void sessions_send(struct mcp_server *server, const char *principal, const char *method);
void sessions_subscriptions(const struct mcp_server *server, mcp_each_subscription *each,
                            void *data);
void sessions_send_updated(struct mcp_server *server, const char *principal, const char *uri);
