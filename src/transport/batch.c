#include "transport/batch.h"

#include <stdlib.h>
#include <string.h>

#include "mcp/revision.h"
#include "mcp/rpc.h"

enum { MESSAGES_MAX = 256 };

struct batch {
    size_t                         open; /* messages not finished, and one while it starts */
    json_t                        *answers;
    const struct mcp_exchange_ops *ops;
    void                          *owner;
};

static bool is_known(const struct mcp_session *session)
{
    return session && mcp_revision_find(mcp_session_version(session))->has_batches;
}

static void finish_one(struct batch *b)
{
    bool has_answers = json_array_size(b->answers) > 0;

    if (--b->open > 0)
        return;
    b->ops->finish(b->owner, has_answers ? 200 : 202, has_answers ? b->answers : NULL);
    json_decref(b->answers);
    free(b);
}

/* ---- the ops of its exchanges ---- */

static void on_send(void *owner, json_t *message)
{
    struct batch *b = owner;

    b->ops->send(b->owner, message);
}

static void on_finish(void *owner, int status, json_t *message)
{
    struct batch *b = owner;

    (void)status; /* of one message: the batch as a whole was understood */
    if (message)
        json_array_append(b->answers, message);
    finish_one(b);
}

static const struct mcp_exchange_ops exchange_ops = {.send = on_send, .finish = on_finish};

/* ---- the beginning ---- */

/* Why a message cannot be part of a batch, or NULL. */
static const char *objection(const json_t *message)
{
    const char *method = rpc_string(message, "method");

    if (method && strcmp(method, "initialize") == 0)
        return "initialize must not be part of a batch";
    if (mcp_is_modern(message, NULL))
        return "a message that names its protocol version must not be part of a batch";
    return NULL;
}

static void start_one(struct batch *b, const struct mcp_origin *from, json_t *message)
{
    const char *why = objection(message);
    struct rpc  rpc;

    b->open++;
    if (!why) {
        mcp_exchange_start(from, message, &exchange_ops, b);
        return;
    }
    rpc_parse(message, &rpc, NULL);
    autojson json_t *answer = rpc_error(rpc.id, RPC_INVALID_REQUEST, why, NULL);
    on_finish(b, 400, answer);
}

static void refuse(const char *why, const struct mcp_exchange_ops *ops, void *owner)
{
    autojson json_t *answer = rpc_error(NULL, RPC_INVALID_REQUEST, why, NULL);

    ops->finish(owner, 400, answer);
}

void batch_start(const struct mcp_origin *from, json_t *messages,
                 const struct mcp_exchange_ops *ops, void *owner)
{
    struct batch *b;
    json_t       *message;
    size_t        i;

    if (!is_known(from->session) || json_array_size(messages) == 0 ||
        json_array_size(messages) > MESSAGES_MAX) {
        refuse(is_known(from->session) ? "a batch has 1 to 256 messages"
                                       : "this revision has no batches: one message at a time",
               ops, owner);
        return;
    }
    b = calloc(1, sizeof *b);
    if (!b)
        abort();
    *b = (struct batch){.open = 1, .answers = json_array(), .ops = ops, .owner = owner};
    json_array_foreach (messages, i, message) {
        start_one(b, from, message);
    }
    finish_one(b);
}
