/* What a handler collects, and the result that is made of it. Each kind of call has its own
 * collectors: another's would make a message that no client understands, so they assert. */
#include <assert.h>
#include <stdlib.h>

#include "base/str.h"
#include "mcp/call_private.h"
#include "mcp/offer.h"

enum { VALUES_MAX = 100 }; /* of a completion */

json_t *call_result(const struct mcp_call *c)
{
    static const char *const members[] = {[CALL_TOOL] = "content",
                                          [CALL_PROMPT] = "messages",
                                          [CALL_READ] = "contents",
                                          [CALL_COMPLETION] = "values",
                                          [CALL_LIST] = "resources"};
    json_t                  *result = rpc_pack("{s:O}", members[c->kind], c->items);
    json_int_t total = (json_int_t)json_array_size(c->items) + (json_int_t)c->left_out;

    if (c->kind == CALL_COMPLETION) {
        json_object_set_new(result, "hasMore", json_boolean(c->left_out > 0));
        json_object_set_new(result, "total", json_integer(total));
        return rpc_pack("{s:o}", "completion", result);
    }
    if (c->structured && c->revision->has_structured)
        json_object_set(result, "structuredContent", c->structured);
    if (c->failed)
        json_object_set_new(result, "isError", json_true());
    if (c->next)
        json_object_set_new(result, "nextCursor", rpc_text(c->next));
    return result;
}

static void add(struct mcp_call *c, enum call_kind kind, json_t *item_take)
{
    assert(c->kind == kind && item_take);
    json_array_append_new(c->items, item_take);
}

/* ---- tools ---- */

void mcp_call_content(struct mcp_call *c, json_t *block_take)
{
    add(c, CALL_TOOL, block_take);
}

static json_t *text_block(const char *text)
{
    return rpc_pack("{s:s, s:o}", "type", "text", "text", rpc_text(text));
}

void mcp_call_text(struct mcp_call *c, const char *text)
{
    mcp_call_content(c, text_block(text));
}

static void add_media(struct mcp_call *c, const char *type, const char *base64,
                      const char *mime_type)
{
    mcp_call_content(c, rpc_pack("{s:s, s:o, s:o}", "type", type, "data", rpc_text(base64),
                                 "mimeType", rpc_text(mime_type)));
}

void mcp_call_image(struct mcp_call *c, const char *base64, const char *mime_type)
{
    add_media(c, "image", base64, mime_type);
}

void mcp_call_audio(struct mcp_call *c, const char *base64, const char *mime_type)
{
    if (c->revision->has_audio)
        add_media(c, "audio", base64, mime_type);
    else
        mcp_call_text(c, "(audio, which this client does not know)");
}

void mcp_call_resource(struct mcp_call *c, json_t *resource_take)
{
    mcp_call_content(c, rpc_pack("{s:s, s:o}", "type", "resource", "resource", resource_take));
}

void mcp_call_resource_link(struct mcp_call *c, json_t *link_take)
{
    if (mcp_call_knows_links(c)) {
        json_object_set_new(link_take, "type", json_string("resource_link"));
        mcp_call_content(c, link_take);
    } else {
        mcp_call_text(c, rpc_string(link_take, "uri"));
        json_decref(link_take);
    }
}

void mcp_call_structured(struct mcp_call *c, json_t *object_take)
{
    assert(c->kind == CALL_TOOL && object_take);
    json_decref(c->structured);
    c->structured = object_take;
}

void mcp_call_set_failed(struct mcp_call *c)
{
    assert(c->kind == CALL_TOOL);
    c->failed = true;
}

/* ---- prompts ---- */

void mcp_call_message(struct mcp_call *c, const char *role, json_t *block_take)
{
    add(c, CALL_PROMPT, rpc_pack("{s:s, s:o}", "role", role, "content", block_take));
}

void mcp_call_message_text(struct mcp_call *c, const char *role, const char *text)
{
    mcp_call_message(c, role, text_block(text));
}

/* ---- resources ---- */

static void add_contents(struct mcp_call *c, const char *mime_type, const char *member,
                         const char *value)
{
    add(c, CALL_READ,
        rpc_pack("{s:o, s:o, s:o*}", "uri", rpc_text(c->uri), member, rpc_text(value), "mimeType",
                 rpc_text(mime_type)));
}

void mcp_call_contents(struct mcp_call *c, const char *mime_type, const char *text)
{
    add_contents(c, mime_type, "text", text);
}

void mcp_call_contents_blob(struct mcp_call *c, const char *mime_type, const char *base64)
{
    add_contents(c, mime_type, "blob", base64);
}

void mcp_call_contents_meta(struct mcp_call *c, json_t *meta_take)
{
    size_t n = json_array_size(c->items);

    assert(c->kind == CALL_READ && n > 0 && meta_take);
    json_object_set_new(json_array_get(c->items, n - 1), "_meta", meta_take);
}

void mcp_call_not_found(struct mcp_call *c)
{
    json_t *data = rpc_pack("{s:o}", "uri", rpc_text(c->uri));

    mcp_call_error(c, c->revision->not_found, "there is no such resource", data);
}

void mcp_call_cache(struct mcp_call *c, int64_t ttl_ms, bool for_all)
{
    if (!c->x || json_object_size(c->answers) > 0)
        return; /* what was answered for is nobody else's */
    c->x->ttl_ms = ttl_ms;
    c->x->cache_for_all = for_all;
}

/* ---- completions ---- */

void mcp_call_value(struct mcp_call *c, const char *value)
{
    if (json_array_size(c->items) < VALUES_MAX)
        add(c, CALL_COMPLETION, rpc_text(value));
    else
        c->left_out++;
}

const char *mcp_call_completes(const struct mcp_call *c)
{
    return rpc_string(request_param(c->x, "argument"), "name");
}

const char *mcp_call_prefix(const struct mcp_call *c)
{
    return rpc_string(request_param(c->x, "argument"), "value");
}

/* ---- lists ---- */

void mcp_call_listed(struct mcp_call *c, json_t *row_take)
{
    add(c, CALL_LIST, row_take);
}

const char *mcp_call_cursor(const struct mcp_call *c)
{
    const char *cursor = request_param_string(c->x, "cursor");

    return cursor && *cursor == REST_MARK ? cursor + 1 : NULL;
}

void mcp_call_set_next(struct mcp_call *c, const char *cursor)
{
    free(c->next);
    c->next = str_format("%c%s", REST_MARK, cursor);
}
