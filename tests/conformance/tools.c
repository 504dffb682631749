/* Plain tools: each kind of content, errors, progress, logging, changes. A handler collects content
 * and ends with mcp_call_done; one that takes longer returns, and ends the call from the loop. */
#include "base/fd.h"
#include "fixture.h"

const struct field no_arguments[] = {{0}};

const char png_base64[] =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx"
    "0gAAAABJRU5ErkJggg==";
const char wav_base64[] = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

/* ---- content ---- */

static void simple_text(struct mcp_call *c)
{
    mcp_call_finish(c, "This is a simple text response for testing.");
}

static void image_content(struct mcp_call *c)
{
    mcp_call_image(c, png_base64, "image/png");
    mcp_call_done(c);
}

static void audio_content(struct mcp_call *c)
{
    mcp_call_audio(c, wav_base64, "audio/wav");
    mcp_call_done(c);
}

static void embedded_resource(struct mcp_call *c)
{
    mcp_call_resource(c, json_pack("{s:s, s:s, s:s}", "uri", "test://embedded-resource", "mimeType",
                                   "text/plain", "text", "This is an embedded resource content."));
    mcp_call_done(c);
}

static void resource_link(struct mcp_call *c)
{
    mcp_call_resource_link(c, json_pack("{s:s, s:s}", "uri", "test://static-text", "name", "text"));
    mcp_call_done(c);
}

static void multiple_content_types(struct mcp_call *c)
{
    mcp_call_text(c, "Multiple content types test:");
    mcp_call_image(c, png_base64, "image/png");
    mcp_call_resource(c,
                      json_pack("{s:s, s:s, s:s}", "uri", "test://mixed-content-resource",
                                "mimeType", "application/json", "text", JSON({"test" : "data"})));
    mcp_call_done(c);
}

static void structured_content(struct mcp_call *c)
{
    mcp_call_structured(c, json_pack("{s:i, s:s}", "answer", 42, "unit", "none"));
    mcp_call_text(c, JSON({"answer" : 42, "unit" : "none"})); /* for clients that know only text */
    mcp_call_done(c);
}

static void error_handling(struct mcp_call *c)
{
    mcp_call_fail(c, "This tool intentionally returns an error for testing");
}

static void contact(struct mcp_call *c)
{
    autofree char *text = json_dumps(mcp_call_arguments(c), JSON_COMPACT | JSON_SORT_KEYS);

    mcp_call_finish(c, "%s", text);
}

/* ---- while it runs ---- */

/* Called four times, as it asks for itself: three reports, then the end. */
static void with_progress(struct mcp_call *c)
{
    unsigned step = mcp_call_turns(c);

    if (step == 3) {
        mcp_call_finish(c, "Tool with progress executed successfully");
        return;
    }
    mcp_call_progress(c, 50 * step, 100, "Another step is done");
    mcp_call_after(c, 50, with_progress);
}

static void with_logging(struct mcp_call *c)
{
    static const char *const lines[] = {"Tool execution started", "Tool processing data",
                                        "Tool execution completed"};
    unsigned                 step = mcp_call_turns(c);

    mcp_call_log(c, "info", NULL, lines[step]);
    if (step < 2)
        mcp_call_after(c, 50, with_logging);
    else
        mcp_call_finish(c, "Tool with logging executed successfully");
}

static void logging_once(struct mcp_call *c)
{
    mcp_call_log(c, "info", "test", "This reaches only clients that asked for it");
    simple_text(c);
}

static void reconnection(struct mcp_call *c)
{
    mcp_call_drop_connection(c);
    mcp_call_after(c, 100, simple_text);
}

/* ---- changes that others hear of ---- */

static struct mcp_server *server_of(const struct mcp_call *c)
{
    return ((const struct fixture *)mcp_call_context(c))->server;
}

static void tool_change(struct mcp_call *c)
{
    mcp_server_tools_changed(server_of(c));
    simple_text(c);
}

static void prompt_change(struct mcp_call *c)
{
    mcp_server_prompts_changed(server_of(c));
    simple_text(c);
}

static void resource_change(struct mcp_call *c)
{
    mcp_server_resources_changed(server_of(c), NULL);
    mcp_server_resource_updated(server_of(c), NULL, "test://watched-resource");
    simple_text(c);
}

/* Here a handler would end what works for the call: a child, a transfer. */
static void stop_work(struct mcp_call *c)
{
    mcp_server_resource_updated(server_of(c), NULL, "test://watched-resource");
}

static void endless(struct mcp_call *c)
{
    mcp_call_set_deadline(c, 500);
    mcp_call_on_cancel(c, stop_work);
}

/* ---- what is offered ---- */

/* clang-format off */
static const char contact_schema[] = JSON({
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
        "street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false});

static const char answer_schema[] = JSON({
    "type": "object",
    "properties": {"answer": {"type": "integer"}, "unit": {"type": "string"}},
    "required": ["answer", "unit"],
    "additionalProperties": false});
/* clang-format on */

static const char icons[] =
    JSON([ {"src" : "https://example.com/text.png", "mimeType" : "image/png"} ]);

struct region_arguments {
    const char *region;
};

/* Clients repeat this argument in the header Mcp-Param-Region, where a proxy can read it. */
static const struct field region_fields[] = {
    {"region", FIELD_STRING, offsetof(struct region_arguments, region), true, 0, 1000,
     "Where to run it", JSON({"x-mcp-header" : "Region"})},
    {0},
};

static void in_region(struct mcp_call *c)
{
    struct region_arguments a = {0};

    mcp_call_decode(c, &a);
    mcp_call_finish(c, "%s", a.region);
}

const struct mcp_tool plain_tools[] = {
    {"test_simple_text", "Simple text", "Returns one block of text", no_arguments, .icons = icons,
     .hints = {.read_only = true, .idempotent = true}, .call = simple_text},
    {"test_image_content", NULL, "Returns an image", no_arguments, .call = image_content},
    {"test_audio_content", NULL, "Returns a sound", no_arguments, .call = audio_content},
    {"test_embedded_resource", NULL, "Returns a resource within its result", no_arguments,
     .call = embedded_resource},
    {"test_resource_link", NULL, "Names a resource", no_arguments, .call = resource_link},
    {"test_multiple_content_types", NULL, "Returns text, an image and a resource", no_arguments,
     .call = multiple_content_types},
    {"test_structured_content", NULL, "Returns data by a schema", no_arguments,
     .output_schema = answer_schema, .call = structured_content},
    {"test_error_handling", NULL, "Fails in a way that the model sees", no_arguments,
     .call = error_handling},
    {"json_schema_2020_12_tool", NULL, "Has an input schema with every kind of keyword",
     .input_schema = contact_schema, .call = contact},
    {"test_x_mcp_header", NULL, "Has an argument that a header repeats", region_fields,
     .eras = MCP_MODERN, .call = in_region},
    {"test_tool_with_progress", NULL, "Reports progress three times before it ends", no_arguments,
     .call = with_progress},
    {"test_tool_with_logging", NULL, "Logs three lines while it runs", no_arguments,
     .call = with_logging},
    {"test_logging_tool", NULL, "Logs one line, to clients that asked for it", no_arguments,
     .eras = MCP_MODERN, .call = logging_once},
    {"test_reconnection", NULL, "Loses its connection; the result waits for the client to return",
     no_arguments, .eras = MCP_LEGACY, .call = reconnection},
    {"test_trigger_tool_change", NULL, "Tells that the list of tools changed", no_arguments,
     .call = tool_change},
    {"test_trigger_prompt_change", NULL, "Tells that the list of prompts changed", no_arguments,
     .call = prompt_change},
    {"test_trigger_resource_change", NULL,
     "Tells that the resources and test://watched-resource changed", no_arguments,
     .call = resource_change},
    {"test_deadline", NULL, "Never ends by itself; calls test://watched-resource changed then",
     no_arguments, .call = endless},
    {0},
};
