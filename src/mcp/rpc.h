/* rpc - JSON-RPC 2.0: what a message is, and how ours are made.
 *
 * Ids are kept as the JSON values they came as (a string or an integer) and echoed; an error that
 * cannot name its request has no id at all, never null.
 *
 * What is not JSON is a parse error, without an id. What is JSON and yet nothing that we can hold
 * (see json_parse_told) is an invalid request, and answered with its id: the client waits for that
 * one. An id past 64 bits cannot be echoed as it is, so it is not. */
#pragma once

#include "base/err.h"
#include "base/json.h"

enum {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_METHOD_NOT_FOUND = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL_ERROR = -32603,
    RPC_RESOURCE_NOT_FOUND = -32002, /* legacy revisions only */
    RPC_HEADER_MISMATCH = -32020,
    RPC_MISSING_CAPABILITY = -32021,
    RPC_UNSUPPORTED_VERSION = -32022,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc { /* all borrowed from the message */
    enum rpc_kind kind;
    const json_t *id;
    const char   *method;
    const json_t *params; /* an object, or NULL */
    const json_t *result, *error;
};

/* What a transport received: a message, or an array of them, not looked at further. NULL: it is
 * neither, and *ret_refusal is the answer (a new reference; on HTTP with status 400). */
json_t *rpc_read(const char *text, size_t size, json_t **ret_refusal);

/* How many answers a message asks for: of one that rpc_read gave, so perhaps of an array. */
size_t rpc_count_requests(const json_t *message);

int rpc_parse(const json_t *message, struct rpc *ret, struct err *e);

json_t *rpc_result(const json_t *id, json_t *result_take);
json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data_take);
json_t *rpc_notification(const char *method, json_t *params_take);
json_t *rpc_request(const char *id, const char *method, json_t *params_take);

/* The string member of an object, or NULL. */
const char *rpc_string(const json_t *object, const char *name);

/* json_pack that never fails, for what is ours alone: a text that is not UTF-8, a number that is
 * not finite or a NULL where none may be aborts. What comes from others goes in by "o*" and one of
 * the two below. */
json_t *rpc_pack(const char *format, ...);

/* A JSON string of what may be cut within a character, or may not be UTF-8 at all: other people's
 * output, error texts that quote other people. NULL for NULL alone. */
json_t *rpc_text(const char *text);

/* Whole numbers without a fraction; NULL: not finite, and JSON has no such number. */
json_t *rpc_number(double value);
