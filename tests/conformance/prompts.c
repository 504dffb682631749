/* Prompts: messages for the client's model, with arguments that can be completed. */
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "fixture.h"

static const char *argument(const struct mcp_call *c, const char *name)
{
    return json_string_value(json_object_get(mcp_call_arguments(c), name));
}

static void simple(struct mcp_call *c)
{
    mcp_call_message_text(c, "user", "This is a simple prompt for testing.");
    mcp_call_done(c);
}

static void with_arguments(struct mcp_call *c)
{
    autofree char *text = str_format("Prompt with arguments: arg1='%s', arg2='%s'",
                                     argument(c, "arg1"), argument(c, "arg2"));

    mcp_call_message_text(c, "user", text);
    mcp_call_done(c);
}

static void with_embedded_resource(struct mcp_call *c)
{
    mcp_call_message(c, "user",
                     json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "resource", "resource", "uri",
                               argument(c, "resourceUri"), "mimeType", "text/plain", "text",
                               "Embedded resource content for testing."));
    mcp_call_message_text(c, "user", "Please process the embedded resource above.");
    mcp_call_done(c);
}

static void with_image(struct mcp_call *c)
{
    mcp_call_message(
        c, "user",
        json_pack("{s:s, s:s, s:s}", "type", "image", "data", png_base64, "mimeType", "image/png"));
    mcp_call_message_text(c, "user", "Please analyze the image above.");
    mcp_call_done(c);
}

/* A prompt may ask back as a tool may. */
static void input_required(struct mcp_call *c)
{
    json_t       *params = form("What is this about?", JSON({"context" : {"type" : "string"}}));
    const json_t *answer = mcp_call_ask(c, "user_context", "elicitation/create", params);
    const char   *context = json_string_value(json_object_get(accepted(answer), "context"));

    if (!answer)
        return;
    mcp_call_message_text(c, "user", context ? context : "No context was given.");
    mcp_call_done(c);
}

void complete_from(struct mcp_call *c, const char *const *words)
{
    for (; *words; words++)
        if (str_starts(*words, mcp_call_prefix(c)))
            mcp_call_value(c, *words);
    mcp_call_done(c);
}

static void complete_argument(struct mcp_call *c)
{
    static const char *const words[] = {"paris", "park", "party", NULL}, *const none[] = {NULL};

    complete_from(c, strcmp(mcp_call_completes(c), "arg1") == 0 ? words : none);
}

static const struct mcp_prompt_argument two_arguments[] = {
    {"arg1", "First test argument", true},
    {"arg2", "Second test argument", true},
    {0},
};

static const struct mcp_prompt_argument uri_argument[] = {
    {"resourceUri", "URI of the resource to embed", true},
    {0},
};

const struct mcp_prompt prompts[] = {
    {"test_simple_prompt", NULL, "A prompt without arguments", .get = simple},
    {"test_prompt_with_arguments", NULL, "A prompt with two arguments", two_arguments,
     .get = with_arguments, .complete = complete_argument},
    {"test_prompt_with_embedded_resource", NULL, "A prompt that embeds a resource", uri_argument,
     .get = with_embedded_resource},
    {"test_prompt_with_image", NULL, "A prompt with an image", .get = with_image},
    {"test_input_required_result_prompt", NULL, "A prompt that asks back", .eras = MCP_MODERN,
     .get = input_required},
    {0},
};
