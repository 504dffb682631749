#include "mcp/rpc.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* ---- reading ---- */

struct span {
    const char *text;
    size_t      size;
};

static const char blanks[] = " \t\n\r";

static bool is_word(struct span s, const char *word)
{
    return s.size == strlen(word) && memcmp(s.text, word, s.size) == 0;
}

/* The string whose quote is at `at`, with both quotes; empty: it has no end. */
static struct span string_at(const char *at, const char *end)
{
    for (const char *p = at + 1; p < end; p++)
        if (*p == '\\')
            p++;
        else if (*p == '"')
            return (struct span){at, (size_t)(p - at) + 1};
    return (struct span){at, 0};
}

static bool is_one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

/* What begins at `at` if it can be an id, blanks before it aside. */
static json_t *id_at(const char *at, const char *end)
{
    struct span token;

    while (at < end && is_one_of(*at, blanks))
        at++;
    token = (struct span){at, 0};
    if (at < end && *at == '"')
        token = string_at(at, end);
    else
        while (at + token.size < end && is_one_of(at[token.size], "+-.0123456789Ee"))
            token.size++;
    autojson json_t *id =
        json_loadb(token.text, token.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    return json_is_string(id) || json_is_integer(id) ? json_incref(id) : NULL;
}

/* What can be said of a message that the parser refused: whether its braces and quotes are those of
 * one object or array, and the id of an object that is a request and has one. Only the outermost
 * level is read; names with escapes are not ours. */
struct outline {
    bool    is_whole, has_method;
    int     ids;
    json_t *id; /* the last one that could be read */
};

static void note_member(struct outline *o, struct span name, const char *value, const char *end)
{
    o->has_method |= is_word(name, "\"method\"");
    if (is_word(name, "\"id\"")) {
        o->ids++;
        json_decref(o->id);
        o->id = id_at(value, end);
    }
}

static struct outline outline_of(const char *text, size_t size)
{
    const char    *end = text + size;
    struct outline o = {0};
    struct span    last = {text, 0}; /* string of the outermost level */
    size_t         depth = 0;
    bool           is_object = false;

    for (const char *at = text; at < end; at++) {
        if (depth == 0 && !is_one_of(*at, blanks) && (!is_one_of(*at, "{[") || o.is_whole)) {
            o.is_whole = false; /* neither, or something behind it */
            return o;
        }
        if (*at == '"') {
            struct span s = string_at(at, end);
            if (s.size == 0)
                return o;
            at += s.size - 1;
            last = depth == 1 ? s : last;
        } else if (*at == '{' || *at == '[') {
            is_object = depth++ == 0 ? *at == '{' : is_object;
        } else if (*at == '}' || *at == ']') {
            o.is_whole = --depth == 0;
        } else if (*at == ':' && depth == 1 && is_object) {
            note_member(&o, last, at + 1, end);
        }
    }
    return o;
}

json_t *rpc_read(const char *text, size_t size, json_t **ret_refusal)
{
    struct err     e = {0};
    bool           is_json;
    json_t        *message = json_parse_told(text, size, &is_json, &e);
    struct outline o = {0};

    if (message)
        return message;
    if (is_json)
        o = outline_of(text, size);
    *ret_refusal = rpc_error(o.is_whole && o.has_method && o.ids == 1 ? o.id : NULL,
                             o.is_whole ? RPC_INVALID_REQUEST : RPC_PARSE_ERROR, e.msg, NULL);
    json_decref(o.id);
    return NULL;
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

size_t rpc_count_requests(const json_t *message)
{
    const json_t *one;
    size_t        i, n = 0;

    if (!json_is_array(message))
        return rpc_string(message, "method") && json_object_get(message, "id");
    json_array_foreach (message, i, one) {
        n += !json_is_array(one) && rpc_count_requests(one);
    }
    return n;
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

/* ---- writing ---- */

json_t *rpc_pack(const char *format, ...)
{
    va_list ap;
    json_t *j;

    va_start(ap, format);
    j = json_vpack_ex(NULL, 0, format, ap);
    va_end(ap);
    return need(j);
}

json_t *rpc_text(const char *text)
{
    return text ? json_text(text, strlen(text)) : NULL;
}

json_t *rpc_number(double value)
{
    if (!isfinite(value))
        return NULL;
    if (fabs(value) <= 1LL << 53 && value == trunc(value))
        return need(json_integer((json_int_t)value));
    return need(json_real(value));
}

json_t *rpc_result(const json_t *id, json_t *result_take)
{
    return rpc_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result_take);
}

json_t *rpc_error(const json_t *id, int code, const char *message, json_t *data_take)
{
    return rpc_pack("{s:s, s:O*, s:{s:i, s:o, s:o*}}", "jsonrpc", "2.0", "id", id, "error", "code",
                    code, "message", rpc_text(message), "data", data_take);
}

json_t *rpc_notification(const char *method, json_t *params_take)
{
    return rpc_pack("{s:s, s:s, s:o*}", "jsonrpc", "2.0", "method", method, "params", params_take);
}

json_t *rpc_request(const char *id, const char *method, json_t *params_take)
{
    return rpc_pack("{s:s, s:s, s:s, s:o*}", "jsonrpc", "2.0", "id", id, "method", method, "params",
                    params_take);
}
