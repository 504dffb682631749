/* Resources: fixed ones, one that changes, a family described by a template, a list of some of it.
 */
#include "base/fd.h"
#include "base/str.h"
#include "fixture.h"

static void answer_text(struct mcp_call *c, const char *mime_type, const char *text)
{
    mcp_call_contents(c, mime_type, text);
    mcp_call_done(c);
}

static void static_text(struct mcp_call *c)
{
    mcp_call_cache(c, 60000, true); /* for a minute, by any proxy too */
    answer_text(c, "text/plain", "This is the content of the static text resource.");
}

static void static_binary(struct mcp_call *c)
{
    mcp_call_contents_blob(c, "image/png", png_base64);
    mcp_call_done(c);
}

static void watched(struct mcp_call *c)
{
    answer_text(c, "text/plain", "Watched resource content");
}

static void by_template(struct mcp_call *c)
{
    autojson json_t *data = json_pack("{s:s, s:b, s:s}", "id", mcp_call_variable(c, "id"),
                                      "templateTest", 1, "data", "Data for the id");
    autofree char   *text = json_dumps(data, JSON_COMPACT);

    answer_text(c, "application/json", text);
}

static const char *const ids[] = {"123", "124", "200", NULL};

static void complete_id(struct mcp_call *c)
{
    complete_from(c, ids);
}

/* Made anew for each client that asks; it could come from a database, in pages, and later. */
void list_by_id(struct mcp_call *c)
{
    for (size_t i = 0; ids[i]; i++) {
        autofree char *uri = str_format("test://template/%s/data", ids[i]);
        mcp_call_listed(c, json_pack("{s:s, s:s}", "uri", uri, "name", ids[i]));
    }
    mcp_call_done(c);
}

const struct mcp_resource resources[] = {
    {"test://static-text", "Static text", NULL, "A text that stays as it is", "text/plain",
     static_text},
    {"test://static-binary", "Static binary", NULL, "An image that stays as it is", "image/png",
     static_binary},
    {"test://watched-resource", "Watched resource", NULL,
     "A text that test_trigger_resource_change calls changed", "text/plain", watched},
    {"test://template/{id}/data", "Template", NULL, "Data for any id", "application/json",
     by_template, complete_id},
    {0},
};
