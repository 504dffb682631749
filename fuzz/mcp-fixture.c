#include "mcp-fixture.h"

#include <string.h>

#include "base/buf.h"

enum { FILLED_MAX = 1 << 20 };

static int calls_open;

int fixture_calls_open(void)
{
    return calls_open;
}

static void one_less(void *counter)
{
    --*(int *)counter;
}

/* First of all in every handler. */
static void count(struct mcp_call *c)
{
    if (mcp_call_data(c))
        return;
    calls_open++;
    mcp_call_set_data(c, &calls_open, one_less);
}

/* ---- tools ---- */

struct echo_args {
    const char   *text;
    int64_t       times;
    bool          loud;
    const json_t *list;
};

static const struct field echo_fields[] = {
    {"text", FIELD_STRING, offsetof(struct echo_args, text), true, 1, 100, "what",
     "{\"x-mcp-header\":\"Text\"}"},
    {"times", FIELD_INT, offsetof(struct echo_args, times), false, 1, 3, "how often",
     "{\"x-mcp-header\":\"Times\"}"},
    {"loud", FIELD_BOOL, offsetof(struct echo_args, loud), false, 0, 0, "isError"},
    {"list", FIELD_LIST, offsetof(struct echo_args, list), false, 0, 2, "anything"},
    {0},
};

static void echo(struct mcp_call *c)
{
    struct echo_args a = {.times = 1};

    count(c);
    mcp_call_decode(c, &a);
    for (int64_t i = 0; i < a.times; i++)
        mcp_call_text(c, a.text);
    if (a.list)
        mcp_call_structured(c, json_pack("{s:O}", "list", a.list));
    if (a.loud)
        mcp_call_set_failed(c);
    mcp_call_done(c);
}

static const char nested_schema[] =
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"object\","
    "\"properties\":{"
    "\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"},"
    "\"c\":{\"type\":\"string\",\"x-mcp-header\":\"C\"}}}}}";

static void nested(struct mcp_call *c)
{
    count(c);
    mcp_call_resource_link(c, json_pack("{s:s, s:s}", "uri", "t://a", "name", "a"));
    mcp_call_done(c);
}

/* Three turns, with all that may be said meanwhile. */
static void slow(struct mcp_call *c)
{
    unsigned n = mcp_call_turns(c);

    count(c);
    mcp_call_progress(c, n, 2, "step");
    mcp_call_log(c, "info", "fuzz", "step");
    if (n == 0)
        mcp_call_drop_connection(c);
    if (n < 2) {
        mcp_call_after(c, 0, slow);
        return;
    }
    mcp_call_audio(c, "", "audio/wav");
    mcp_call_done(c);
}

static void hang_cancelled(struct mcp_call *c)
{
    count(c);
}

static void hang(struct mcp_call *c)
{
    count(c);
    mcp_call_on_cancel(c, hang_cancelled);
}

static void late(struct mcp_call *c)
{
    count(c);
    mcp_call_set_deadline(c, 0);
    mcp_call_on_cancel(c, hang_cancelled);
}

/* Two rounds, the second with two questions and a state. */
static void ask(struct mcp_call *c)
{
    const json_t *name, *sampled, *roots;

    count(c);
    name = mcp_call_ask(c, "name", "elicitation/create", json_pack("{s:s}", "message", "name?"));
    if (!name) {
        mcp_call_set_state(c, "first");
        return;
    }
    sampled = mcp_call_ask(c, "sample", "sampling/createMessage", json_object());
    roots = mcp_call_ask(c, "roots", "roots/list", json_object());
    if (!sampled || !roots) {
        mcp_call_set_state(c, "second");
        return;
    }
    mcp_call_text(c, mcp_call_state(c) ? mcp_call_state(c) : "");
    mcp_call_structured(
        c, json_pack("{s:O, s:O, s:O}", "name", name, "sample", sampled, "roots", roots));
    mcp_call_done(c);
}

static void background(struct mcp_call *c)
{
    count(c);
    if (mcp_call_as_task(c) && mcp_call_turns(c) == 0)
        mcp_call_after(c, 0, ask);
    else
        ask(c);
}

static void fail_in_background(struct mcp_call *c)
{
    count(c);
    mcp_call_as_task(c);
    mcp_call_error(c, -32000, "failed", json_object());
}

static struct mcp_server *server; /* the only one at a time */

static void change(struct mcp_call *c)
{
    count(c);
    mcp_server_tools_changed(server);
    mcp_server_prompts_changed(server);
    mcp_server_resources_changed(server, NULL);
    mcp_server_resource_updated(server, mcp_call_principal(c), "t://a");
    mcp_call_fail(c, "changed \xc3");
}

static const struct field    nothing[] = {{0}};
static const struct mcp_tool tools[] = {
    {"echo", "Echo", "e", echo_fields, .icons = "[]", .call = echo},
    {"nested", NULL, "n", .input_schema = nested_schema, .output_schema = "{}", .call = nested},
    {"slow", NULL, "s", nothing, .call = slow},
    {"hang", NULL, "h", nothing, .call = hang},
    {"late", NULL, "l", nothing, .call = late},
    {"ask", NULL, "a", nothing, .call = ask},
    {"need", NULL, "n", nothing, .needs = "sampling", .call = ask},
    {"task", NULL, "t", nothing, .task = MCP_TASK_OPTIONAL, .call = background},
    {"fail", NULL, "f", nothing, .task = MCP_TASK_REQUIRED, .call = fail_in_background},
    {"change", NULL, "c", nothing, .call = change},
    {0},
};

/* ---- resources and prompts ---- */

static void complete(struct mcp_call *c)
{
    count(c);
    mcp_call_value(c, mcp_call_prefix(c));
    mcp_call_after(c, 0, mcp_call_done);
}

/* Two pages after those that are registered. */
static void list_resources(struct mcp_call *c)
{
    count(c);
    mcp_call_listed(c, json_pack("{s:s, s:s}", "uri", "t://b", "name", "b"));
    if (!mcp_call_cursor(c) || !*mcp_call_cursor(c))
        mcp_call_set_next(c, "2");
    mcp_call_done(c);
}

static void read_resource(struct mcp_call *c)
{
    const char *id = mcp_call_variable(c, "id");

    count(c);
    if (id && strcmp(id, "none") == 0) {
        mcp_call_not_found(c);
        return;
    }
    mcp_call_contents(c, id, id ? id : "");
    mcp_call_done(c);
}

static const struct mcp_resource resources[] = {
    {"t://a", "a", "A", NULL, "text/plain", read_resource, NULL},
    {"t://{id}/data", "d", NULL, "d", NULL, read_resource, complete},
    {"f:///{+path}.{id}", "f", NULL, NULL, NULL, read_resource, complete},
    {0},
};

static void get_prompt(struct mcp_call *c)
{
    const char *who = json_string_value(json_object_get(mcp_call_arguments(c), "who"));

    count(c);
    mcp_call_message(c, "user", json_pack("{s:s, s:s}", "type", "text", "text", who));
    mcp_call_after(c, 0, mcp_call_done);
}

static const struct mcp_prompt_argument arguments[] = {
    {"who", "w", true}, {"why", NULL, false}, {0}};
static const struct mcp_prompt prompts[] = {
    {"greet", "Greet", "g", arguments, .get = get_prompt, .complete = complete}, {0}};

static const struct mcp_about about = {"fuzz", "Fuzz", "0", "none", "[]"};

struct mcp_server *fixture_new(struct event_base *base)
{
    server = mcp_server_new(base, &about, base);
    mcp_server_add_tools(server, tools);
    mcp_server_add_resources(server, resources);
    mcp_server_set_resource_lister(server, list_resources);
    mcp_server_add_prompts(server, prompts);
    return server;
}

/* ---- what was heard ---- */

/* The value that follows the last `before`, up to one of `stops`. */
static void note(char *to, size_t room, const char *text, size_t size, const char *before,
                 const char *stops)
{
    const char *end = text + size, *at = text, *found = NULL;
    size_t      length = strlen(before), n = 0;

    while ((at = memmem(at, (size_t)(end - at), before, length)))
        found = at += length;
    if (!found)
        return;
    while (found + n < end && !strchr(stops, found[n]))
        n++;
    if (n < room && found + n < end) {
        memcpy(to, found, n);
        to[n] = '\0';
    }
}

void heard_note(struct heard *h, const char *text, size_t size)
{
    note(h->state, sizeof h->state, text, size, "\"requestState\":\"", "\"");
    note(h->task, sizeof h->task, text, size, "\"taskId\":\"", "\"");
    note(h->session, sizeof h->session, text, size, "Mcp-Session-Id: ", "\r");
}

char *heard_fill(const struct heard *h, const char *text, size_t size, size_t *ret_size)
{
    const struct {
        const char *name, *value;
    } words[] = {{"%STATE%", h->state}, {"%TASK%", h->task}, {"%SESSION%", h->session}};
    struct buf out;

    buf_init(&out, FILLED_MAX);
    for (size_t i = 0, n; i < size; i += n) {
        const char *value = NULL;

        n = 1;
        for (size_t k = 0; text[i] == '%' && k < sizeof words / sizeof *words; k++)
            if (size - i >= strlen(words[k].name) &&
                memcmp(text + i, words[k].name, strlen(words[k].name)) == 0) {
                n = strlen(words[k].name);
                value = words[k].value;
            }
        buf_add(&out, value ? value : text + i, value ? strlen(value) : 1);
    }
    *ret_size = out.size;
    return buf_text(&out); /* its memory is the caller's now */
}
