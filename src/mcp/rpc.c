#include "mcp/rpc.h"

#include <stdlib.h>
#include <string.h>

static json_t *need(json_t *j)
{
    if (!j)
        abort(); /* out of memory, or a text of ours that is not UTF-8 */
    return j;
}

const char *rpc_string(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static int parse_response(const json_t *message, struct rpc *ret, struct err *e)
{
    ret->kind = RPC_RESPONSE;
    ret->result = json_object_get(message, "result");
    ret->error = json_object_get(message, "error");
    if (!ret->id || !ret->result == !ret->error)
        return err_set(e, ERR_INVALID, "a message needs a method, or an id with result or error");
    return 0;
}

int rpc_parse(const json_t *message, struct rpc *ret, struct err *e)
{
    const char *version = rpc_string(message, "jsonrpc");
    json_t     *method = json_object_get(message, "method");

    *ret = (struct rpc){.id = json_object_get(message, "id")};
    if (!json_is_object(message) || !version || strcmp(version, "2.0") != 0)
        return err_set(e, ERR_INVALID, "not a JSON-RPC 2.0 message");
    if (ret->id && !json_is_string(ret->id) && !json_is_integer(ret->id)) {
        ret->id = NULL;
        return err_set(e, ERR_INVALID, "id must be a string or an integer");
    }
    if (!method)
        return parse_response(message, ret, e);
    ret->method = json_string_value(method);
    ret->params = json_object_get(message, "params");
    if (!ret->method)
        return err_set(e, ERR_INVALID, "method must be a string");
    if (ret->params && !json_is_object(ret->params))
        return err_set(e, ERR_INVALID, "params must be an object");
    ret->kind = ret->id ? RPC_REQUEST : RPC_NOTIFICATION;
    return 0;
}

json_t *rpc_result(const json_t *id, json_t *result_take)
{
    return need(json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result_take));
}

json_t *rpc_text(const char *text)
{
    return json_text(text, strlen(text));
}

json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data_take)
{
    return need(json_pack("{s:s, s:O*, s:{s:i, s:o, s:o*}}", "jsonrpc", "2.0", "id", id, "error",
                          "code", code, "message", rpc_text(message), "data", data_take));
}

json_t *rpc_notification(const char *method, json_t *params_take)
{
    return need(
        json_pack("{s:s, s:s, s:o*}", "jsonrpc", "2.0", "method", method, "params", params_take));
}

json_t *rpc_request(const char *id, const char *method, json_t *params_take)
{
    return need(json_pack("{s:s, s:s, s:s, s:o*}", "jsonrpc", "2.0", "id", id, "method", method,
                          "params", params_take));
}
