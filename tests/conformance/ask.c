/* Tools that ask the client back: a form for the person (elicitation), a question to the model
 * (sampling), the roots of the workspace. A handler looks for the answer; when it is not there, it
 * asks and returns, and is called again (mcp_call_ask does both). The same code serves every era:
 * in the legacy one the question is a request on the call's stream; in the modern one it is a
 * result, and the client calls again with the answer. What a handler wants to remember until then
 * is its state. */
#include <string.h>

#include "base/fd.h"
#include "fixture.h"

json_t *form(const char *message, const char *properties)
{
    return json_pack("{s:s, s:{s:s, s:o}}", "message", message, "requestedSchema", "type", "object",
                     "properties", json_loads(properties, 0, NULL));
}

const json_t *accepted(const json_t *answer)
{
    const char   *action = json_string_value(json_object_get(answer, "action"));
    const json_t *content = json_object_get(answer, "content");

    return action && strcmp(action, "accept") == 0 && json_is_object(content) ? content : NULL;
}

static json_t *question_to_model(const char *text)
{
    return json_pack("{s:[{s:s, s:{s:s, s:s}}], s:i}", "messages", "role", "user", "content",
                     "type", "text", "text", text, "maxTokens", 100);
}

json_t *name_form(void)
{
    return form("What is your name?", JSON({"name" : {"type" : "string"}}));
}

static void finish_with_json(struct mcp_call *c, const char *before, const json_t *value)
{
    autofree char *json = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    mcp_call_finish(c, "%s%s", before, json ? json : "");
}

/* ---- one question ---- */

struct text_argument {
    const char *text;
};

static void sampling(struct mcp_call *c)
{
    struct text_argument a = {.text = "What is the capital of France?"};
    const json_t        *answer;

    mcp_call_decode(c, &a);
    answer = mcp_call_ask(c, "question", "sampling/createMessage", question_to_model(a.text));
    if (answer)
        finish_with_json(c, "LLM response: ", json_object_get(answer, "content"));
}

static void list_roots(struct mcp_call *c)
{
    const json_t *answer = mcp_call_ask(c, "client_roots", "roots/list", json_object());

    if (answer)
        finish_with_json(c, "Roots: ", json_object_get(answer, "roots"));
}

/* Asks with the form, and shows what came back. */
static void elicit(struct mcp_call *c, json_t *form_take)
{
    const json_t *answer = mcp_call_ask(c, "form", "elicitation/create", form_take);

    if (answer)
        finish_with_json(c, "User response: ", answer);
}

/* clang-format off */
static void elicitation(struct mcp_call *c)
{
    struct text_argument a = {0};

    mcp_call_decode(c, &a);
    json_t *params = form(a.text, JSON({"username": {"type": "string"},
                                        "email": {"type": "string"}}));
    json_object_set_new(json_object_get(params, "requestedSchema"), "required",
                        json_pack("[s, s]", "username", "email"));
    elicit(c, params);
}

static void elicitation_defaults(struct mcp_call *c)
{
    elicit(c, form("Please review this", JSON({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"],
                   "default": "active"},
        "verified": {"type": "boolean", "default": true}})));
}

static void elicitation_enums(struct mcp_call *c)
{
    elicit(c, form("Please choose", JSON({
        "untitledSingle": {"type": "string", "enum": ["option1", "option2"]},
        "titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First"},
                                                     {"const": "value2", "title": "Second"}]},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"],
                       "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string",
                                                     "enum": ["option1", "option2"]}},
        "titledMulti": {"type": "array",
                        "items": {"anyOf": [{"const": "value1", "title": "First"},
                                            {"const": "value2", "title": "Second"}]}}})));
}
/* clang-format on */

static void ask_name(struct mcp_call *c)
{
    const json_t *answer = mcp_call_ask(c, "user_name", "elicitation/create", name_form());
    const char   *name = json_string_value(json_object_get(accepted(answer), "name"));

    if (name)
        mcp_call_finish(c, "Hello, %s!", name);
    else if (answer)
        mcp_call_fail(c, "no name was given");
}

/* ---- more than one, and a memory ---- */

static const char yes_or_no[] = JSON({"ok" : {"type" : "boolean"}});

/* The state comes back unchanged or not at all: the library refuses one that is not ours, was used
 * before, or belongs to another call. */
static void request_state(struct mcp_call *c)
{
    const json_t *answer =
        mcp_call_ask(c, "confirm", "elicitation/create", form("Go on?", yes_or_no));

    if (answer)
        mcp_call_finish(c, "%s", mcp_call_state(c) ? mcp_call_state(c) : "no state");
    else
        mcp_call_set_state(c, "state-ok");
}

static void multiple_inputs(struct mcp_call *c)
{
    const json_t *confirm =
        mcp_call_ask(c, "confirm", "elicitation/create", form("Go on?", yes_or_no));
    const json_t *greeting =
        mcp_call_ask(c, "greeting", "sampling/createMessage", question_to_model("Greet the user"));
    const json_t *roots = mcp_call_ask(c, "client_roots", "roots/list", json_object());

    if (confirm && greeting && roots)
        mcp_call_finish(c, "All inputs were received");
    else
        mcp_call_set_state(c, "all three");
}

static void multi_round(struct mcp_call *c)
{
    static const char *const steps[] = {"step1", "step2"};

    for (size_t i = 0; i < 2; i++)
        if (!mcp_call_ask(c, steps[i], "elicitation/create", form(steps[i], yes_or_no))) {
            mcp_call_set_state(c, steps[i]);
            return;
        }
    mcp_call_finish(c, "Both steps are done");
}

/* Asks only what this client can answer. */
static void by_capabilities(struct mcp_call *c)
{
    bool waits = false;

    if (mcp_call_has_capability(c, "sampling"))
        waits |= !mcp_call_ask(c, "greeting", "sampling/createMessage",
                               question_to_model("Greet the user"));
    if (mcp_call_has_capability(c, "elicitation"))
        waits |= !mcp_call_ask(c, "confirm", "elicitation/create", form("Go on?", yes_or_no));
    if (!waits)
        mcp_call_finish(c, "Everything was asked that could be");
}

static void never_reached(struct mcp_call *c)
{
    mcp_call_finish(c, "The client knows sampling");
}

/* ---- what is offered ---- */

static const struct field prompt_fields[] = {
    {"prompt", FIELD_STRING, offsetof(struct text_argument, text), true, 0, 10000,
     "What to ask the model"},
    {0},
};

static const struct field message_fields[] = {
    {"message", FIELD_STRING, offsetof(struct text_argument, text), true, 0, 10000,
     "What to ask the person"},
    {0},
};

const struct mcp_tool asking_tools[] = {
    {"test_sampling", NULL, "Asks the client's model", prompt_fields, .call = sampling},
    {"test_elicitation", NULL, "Asks the person with a form", message_fields, .call = elicitation},
    {"test_elicitation_sep1034_defaults", NULL, "Asks with a form that has defaults", no_arguments,
     .call = elicitation_defaults},
    {"test_elicitation_sep1330_enums", NULL, "Asks with a form of choices", no_arguments,
     .call = elicitation_enums},
    {"test_streaming_elicitation", NULL, "Asks for a name, whatever the answer's form",
     no_arguments, .eras = MCP_MODERN, .call = ask_name},
    {"test_missing_capability", NULL, "Needs a client that knows sampling", no_arguments,
     .eras = MCP_MODERN, .needs = "sampling", .call = never_reached},
    {"test_input_required_result_elicitation", NULL, "Asks for a name and greets", no_arguments,
     .eras = MCP_MODERN, .call = ask_name},
    {"test_input_required_result_sampling", NULL, "Asks the model for a capital", no_arguments,
     .eras = MCP_MODERN, .call = sampling},
    {"test_input_required_result_list_roots", NULL, "Asks for the client's roots", no_arguments,
     .eras = MCP_MODERN, .call = list_roots},
    {"test_input_required_result_request_state", NULL, "Remembers something between two rounds",
     no_arguments, .eras = MCP_MODERN, .call = request_state},
    {"test_input_required_result_multiple_inputs", NULL, "Asks three things at once", no_arguments,
     .eras = MCP_MODERN, .call = multiple_inputs},
    {"test_input_required_result_multi_round", NULL, "Asks in two rounds", no_arguments,
     .eras = MCP_MODERN, .call = multi_round},
    {"test_input_required_result_tampered_state", NULL, "Refuses a state that was changed",
     no_arguments, .eras = MCP_MODERN, .call = request_state},
    {"test_input_required_result_capabilities", NULL, "Asks only what the client can answer",
     no_arguments, .eras = MCP_MODERN, .call = by_capabilities},
    {0},
};
