/* Resources: fixed ones, one that changes, and a family described by a template. */
#include <string.h>

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

static void complete_id(struct mcp_call *c)
{
    static const char *const ids[] = {"123", "124", "200", NULL};

    complete_from(c, ids);
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
