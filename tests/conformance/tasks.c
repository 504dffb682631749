/* Tools that go on in the background: with a client that knows tasks, mcp_call_as_task answers the
 * request with the task's name, and the handler goes on as if nothing had happened; progress and
 * results are the client's to fetch. Without such a client the call simply takes its time. */
#include "base/fd.h"
#include "base/str.h"
#include "fixture.h"

enum { JOB_MS = 1000 };

struct greet_arguments {
    const char *name;
};

static void greet(struct mcp_call *c)
{
    struct greet_arguments a = {.name = "world"};

    mcp_call_decode(c, &a);
    mcp_call_finish(c, "Hello, %s!", a.name);
}

/* ---- taking time ---- */

struct compute_arguments {
    int64_t     seconds;
    const char *label;
};

static void computed(struct mcp_call *c)
{
    struct compute_arguments a = {.label = "slow_compute"};

    mcp_call_decode(c, &a);
    mcp_call_finish(c, "%s: done after %lld s", a.label, (long long)a.seconds);
}

static void slow_compute(struct mcp_call *c)
{
    struct compute_arguments a = {0};

    mcp_call_decode(c, &a);
    if (a.seconds == 0) {
        computed(c);
        return;
    }
    mcp_call_as_task(c);
    mcp_call_after(c, a.seconds * 1000, computed);
}

static void fail(struct mcp_call *c)
{
    mcp_call_fail(c, "The job failed, and says so in its result");
}

static void failing_job(struct mcp_call *c)
{
    mcp_call_as_task(c);
    mcp_call_after(c, JOB_MS, fail);
}

static void break_down(struct mcp_call *c)
{
    mcp_call_error(c, -32603, "The job broke down", NULL);
}

static void protocol_error_job(struct mcp_call *c)
{
    mcp_call_as_task(c);
    mcp_call_after(c, JOB_MS, break_down);
}

/* ---- asking from the background ---- */

struct delete_arguments {
    const char *filename;
};

static void confirm_delete(struct mcp_call *c)
{
    struct delete_arguments a = {.filename = "everything"};
    const json_t           *answer;

    mcp_call_decode(c, &a);
    mcp_call_as_task(c);
    autofree char *question = str_format("Delete %s?", a.filename);
    answer = mcp_call_ask(c, "confirm", "elicitation/create",
                          form(question, JSON({"confirm" : {"type" : "boolean"}})));
    bool yes = json_is_true(json_object_get(accepted(answer), "confirm"));
    if (answer)
        mcp_call_finish(c, "%s %s", yes ? "Deleted" : "Kept", a.filename);
}

static void multi_input(struct mcp_call *c)
{
    static const char value[] = JSON({"value" : {"type" : "string"}});

    mcp_call_as_task(c);
    const json_t *first = mcp_call_ask(c, "first", "elicitation/create", form("First?", value));
    const json_t *second = mcp_call_ask(c, "second", "elicitation/create", form("Second?", value));
    if (first && second)
        mcp_call_finish(c, "Both values were received");
}

static void greet_in_task(struct mcp_call *c)
{
    const json_t *answer = mcp_call_answer(c, "user_name");
    const char   *name = json_string_value(json_object_get(accepted(answer), "name"));

    mcp_call_finish(c, "Hello, %s!", name ? name : "stranger");
}

/* The question comes before the task: it is answered as any other, and then the task begins. */
static void tool_with_task(struct mcp_call *c)
{
    if (!mcp_call_ask(c, "user_name", "elicitation/create", name_form()))
        return;
    mcp_call_as_task(c);
    mcp_call_after(c, JOB_MS, greet_in_task);
}

/* ---- what is offered ---- */

static const struct field greet_fields[] = {
    {"name", FIELD_STRING, offsetof(struct greet_arguments, name), false, 0, 1000, "Whom to greet"},
    {0},
};

static const struct field compute_fields[] = {
    {"seconds", FIELD_INT, offsetof(struct compute_arguments, seconds), true, 0, 3600,
     "How long it takes"},
    {"label", FIELD_STRING, offsetof(struct compute_arguments, label), false, 0, 1000,
     "What the result calls it"},
    {0},
};

static const struct field delete_fields[] = {
    {"filename", FIELD_STRING, offsetof(struct delete_arguments, filename), false, 0, 1000,
     "What to delete"},
    {0},
};

const struct mcp_tool task_tools[] = {
    {"greet", NULL, "Greets at once", greet_fields, .call = greet},
    {"slow_compute", NULL, "Sleeps, then answers", compute_fields, .task = MCP_TASK_OPTIONAL,
     .call = slow_compute},
    {"failing_job", NULL, "Ends with a result that is an error", no_arguments, .eras = MCP_MODERN,
     .task = MCP_TASK_REQUIRED, .call = failing_job},
    {"protocol_error_job", NULL, "Ends with an error of the protocol", no_arguments,
     .eras = MCP_MODERN, .task = MCP_TASK_REQUIRED, .call = protocol_error_job},
    {"confirm_delete", NULL, "Asks before it deletes (nothing)", delete_fields, .eras = MCP_MODERN,
     .hints = {.destructive = true}, .task = MCP_TASK_REQUIRED, .call = confirm_delete},
    {"multi_input", NULL, "Asks two things at once", no_arguments, .eras = MCP_MODERN,
     .task = MCP_TASK_REQUIRED, .call = multi_input},
    {"test_tool_with_task", NULL, "Asks first, and then goes on in the background", no_arguments,
     .eras = MCP_MODERN, .task = MCP_TASK_REQUIRED, .call = tool_with_task},
    {0},
};
