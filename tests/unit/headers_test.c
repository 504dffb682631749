#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp/exchange.h"
#include "mcp/rpc.h"
#include "mcp/server.h"

#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"

static void answer(struct mcp_call *c)
{
    mcp_call_done(c);
}

static const char schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"s\":{\"type\":\"string\",\"x-mcp-header\":\"S\"},"
    "\"i\":{\"type\":\"integer\",\"x-mcp-header\":\"I\"},"
    "\"b\":{\"type\":\"boolean\",\"x-mcp-header\":\"B\"},"
    "\"other\":{\"type\":\"string\"},"
    "\"in\":{\"type\":\"object\",\"properties\":{\"d\":{\"type\":\"object\",\"properties\":"
    "{\"n\":{\"type\":\"string\",\"x-mcp-header\":\"Nested-Name\"}}}}}}}";

static const struct mcp_tool tools[] = {
    {"t", NULL, "t", .input_schema = schema, .call = answer},
    {"ä", NULL, "t", .input_schema = "{}", .call = answer},
    {0},
};
static const struct mcp_about about = {"test", "Test", "0", "none", "[]"};

/* ---- one request ---- */

struct sent {
    const char *name, *value; /* the one header that is not as it should be; NULL: none */
    const char *tool;         /* as Mcp-Name has it */
    int64_t     code;         /* of the error; 0: a result came */
    int         status;
    int         finished;
};

/* As a transport hands it over. */
static const char *without_blanks(const char *value)
{
    static char text[4096];
    size_t      size;

    if (!value)
        return NULL;
    value += strspn(value, " \t");
    size = strlen(value);
    while (size > 0 && strchr(" \t", value[size - 1]))
        size--;
    assert_true(size < sizeof text);
    memcpy(text, value, size);
    text[size] = '\0';
    return text;
}

static const char *on_header(void *owner, const char *name)
{
    const struct sent *s = owner;

    if (s->name && strcasecmp(name, s->name) == 0)
        return without_blanks(s->value);
    if (strcmp(name, "MCP-Protocol-Version") == 0)
        return "2026-07-28";
    if (strcmp(name, "Mcp-Method") == 0)
        return "tools/call";
    return strcmp(name, "Mcp-Name") == 0 ? s->tool : NULL;
}

static void on_send(void *owner, json_t *message)
{
    (void)owner;
    (void)message;
    fail();
}

static void on_finish(void *owner, int status, json_t *message)
{
    struct sent *s = owner;

    s->finished++;
    s->status = status;
    s->code = json_integer_value(json_object_get(json_object_get(message, "error"), "code"));
    assert_int_equal(json_integer_value(json_object_get(message, "id")), 7);
}

static const struct mcp_exchange_ops ops = {
    .send = on_send, .finish = on_finish, .header = on_header};

static struct event_base *base;

static int begin(void **state)
{
    struct mcp_server *server;

    base = event_base_new();
    server = mcp_server_new(base, &about, NULL);
    mcp_server_add_tools(server, tools);
    *state = server;
    return 0;
}

static int end(void **state)
{
    mcp_server_free(*state);
    event_base_free(base);
    return 0;
}

static struct sent ask(void **state, const char *tool_name, const char *arguments,
                       const char *header, const char *value)
{
    struct mcp_origin from = {.server = *state, .principal = "", .on_http = true};
    struct sent       s = {header, value, tool_name, 0, 0, 0};
    autofree char    *text = str_format("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\","
                                           "\"params\":{\"name\":\"%s\",\"arguments\":%s," META "}}",
                                        tool_name, arguments);
    autojson json_t  *message = json_parse(text, strlen(text), NULL);

    assert_non_null(message);
    mcp_exchange_start(&from, message, &ops, &s);
    assert_int_equal(s.finished, 1);
    return s;
}

/* ---- the tests ---- */

struct row {
    const char *arguments, *header, *value; /* NULL: no such header */
    bool        passes;
};

static void check(void **state, const char *tool_name, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sent s = ask(state, tool_name, rows[i].arguments, rows[i].header, rows[i].value);
        if (s.code != (rows[i].passes ? 0 : RPC_HEADER_MISMATCH) ||
            s.status != (rows[i].passes ? 200 : 400))
            fail_msg("%s with %s: %s gives %d, %lld", rows[i].arguments, rows[i].header,
                     rows[i].value, s.status, (long long)s.code);
    }
}

#define CHECK(tool, rows) check(state, tool, rows, sizeof(rows) / sizeof *(rows))

static void texts(void **state)
{
    static const struct row rows[] = {
        {"{}", NULL, NULL, true},
        {"{\"other\":\"x\"}", NULL, NULL, true},
        {"{\"other\":\"x\"}", "Mcp-Param-Other", "y", true}, /* no schema names it */
        {"{\"s\":\"x\"}", "Mcp-Param-S", "x", true},
        {"{\"s\":\"x\"}", "mcp-param-s", "x", true},
        {"{\"s\":\"x\"}", "Mcp-Param-S", " \tx ", true},
        {"{\"s\":\"x y\"}", "Mcp-Param-S", "x y", true},
        {"{\"s\":\"\"}", "Mcp-Param-S", "", true},
        {"{\"s\":\"x\"}", NULL, NULL, false},
        {"{\"s\":\"\"}", NULL, NULL, false},
        {"{\"s\":\"x\"}", "Mcp-Param-S", "X", false},
        {"{\"s\":\"x\"}", "Mcp-Param-S", "x y", false},
        {"{\"s\":\"x\"}", "Mcp-Param-S", "", false},
        {"{\"s\":\" x\"}", "Mcp-Param-S", " x", false}, /* blanks need base64 */
        {"{\"s\":\"42\"}", "Mcp-Param-S", "42.0", false},
        {"{\"s\":\"ä\"}", "Mcp-Param-S", "ä", false}, /* as does what is not ASCII */
        {"{\"s\":\"a\\u007f\"}", "Mcp-Param-S", "a\x7f", false},
        {"{\"s\":\"a\\u0001\"}", "Mcp-Param-S", "a\x01", false},
        {"{\"s\":\"a\\tb\"}", "Mcp-Param-S", "a\tb", true},
    };

    CHECK("t", rows);
}

static void sentinels(void **state)
{
    static const struct row rows[] = {
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "=?base64?SGVsbG8=?=", true},
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "\t=?base64?SGVsbG8=?= ", true},
        {"{\"s\":\"ä\"}", "Mcp-Param-S", "=?base64?w6Q=?=", true},
        {"{\"s\":\" x\"}", "Mcp-Param-S", "=?base64?IHg=?=", true},
        {"{\"s\":\"\"}", "Mcp-Param-S",
         "=?base64?"
         "?=",
         true},
        {"{\"s\":\"=?base64?eA==?=\"}", "Mcp-Param-S", "=?base64?PT9iYXNlNjQ/ZUE9PT89?=", true},
        {"{\"s\":\"=?base64?eA==?=\"}", "Mcp-Param-S", "=?base64?eA==?=", false},
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "=?base64?SGVsbG9v?=", false},
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "=?base64?SGVsbG8?=", false},     /* padding */
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "=?base64?SGVs!!!bG8=?=", false}, /* letters */
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "=?base64?SGVsbG9=?=", false},    /* loose bits */
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "=?base64?SGVs bG8=?=", false},   /* blanks */
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "=?base64? SGVsbG8= ?=", false},
        {"{\"s\":\"Hello\"}", "Mcp-Param-S", "=?BASE64?SGVsbG8=?=", false}, /* a text like others */
        {"{\"s\":\"=?BASE64?SGVsbG8=?=\"}", "Mcp-Param-S", "=?BASE64?SGVsbG8=?=", true},
        {"{\"s\":\"SGVsbG8=\"}", "Mcp-Param-S", "SGVsbG8=", true},
        {"{\"s\":\"=?base64?SGVsbG8=\"}", "Mcp-Param-S", "=?base64?SGVsbG8=", true},
        {"{\"s\":\"=?base64?=\"}", "Mcp-Param-S", "=?base64?=", true}, /* one '?' for both ends */
        {"{\"s\":\"a\"}", "Mcp-Param-S", "=?base64?YQBi?=", false},    /* a, NUL, b */
        {"{\"s\":\"\xef\xbf\xbd\"}", "Mcp-Param-S", "=?base64?/w==?=", false}, /* not UTF-8 */
        {"{\"i\":42}", "Mcp-Param-I", "=?base64?NDI=?=", true},
        {"{\"b\":true}", "Mcp-Param-B", "=?base64?dHJ1ZQ==?=", true},
    };

    CHECK("t", rows);
}

static void numbers_and_booleans(void **state)
{
    static const struct row rows[] = {
        {"{\"i\":42}", "Mcp-Param-I", "42", true},
        {"{\"i\":42}", "Mcp-Param-I", "42.0", true},
        {"{\"i\":42}", "Mcp-Param-I", "4.2e1", true},
        {"{\"i\":42.0}", "Mcp-Param-I", "42", true},
        {"{\"i\":1e3}", "Mcp-Param-I", "1000", true},
        {"{\"i\":-7}", "Mcp-Param-I", "-7", true},
        {"{\"i\":1.5}", "Mcp-Param-I", "1.5", true}, /* what an integer is, the tool says */
        {"{\"i\":1.5}", "Mcp-Param-I", "15e-1", true},
        {"{\"i\":1.5}", "Mcp-Param-I", "1.6", false},
        {"{\"i\":42}", "Mcp-Param-I", "43", false},
        {"{\"i\":42}", "Mcp-Param-I", "42.5", false},
        {"{\"i\":42}", "Mcp-Param-I", "", false},
        {"{\"i\":0}", "Mcp-Param-I", "", false},
        {"{\"i\":0}", "Mcp-Param-I", "x", false},
        {"{\"i\":42}", "Mcp-Param-I", "+42", false},
        {"{\"i\":42}", "Mcp-Param-I", "042", false},
        {"{\"i\":42}", "Mcp-Param-I", "0x2a", false},
        {"{\"i\":42}", "Mcp-Param-I", "42 42", false},
        {"{\"i\":42}", "Mcp-Param-I", "\"42\"", false},
        {"{\"i\":42}", NULL, NULL, false},
        {"{\"i\":1.5}", NULL, NULL, false},
        {"{\"i\":9223372036854775807}", "Mcp-Param-I", "9223372036854775807", true},
        {"{\"i\":9223372036854775807}", "Mcp-Param-I", "9223372036854775806", false},
        {"{\"i\":9223372036854775807}", "Mcp-Param-I", "9223372036854775808", false},
        {"{\"i\":9007199254740993}", "Mcp-Param-I", "9007199254740992.0", false},
        {"{\"i\":9007199254740992}", "Mcp-Param-I", "9007199254740993.0", false},
        {"{\"i\":1e300}", "Mcp-Param-I", "1e300", true},
        {"{\"b\":true}", "Mcp-Param-B", "true", true},
        {"{\"b\":false}", "Mcp-Param-B", "false", true},
        {"{\"b\":true}", "Mcp-Param-B", "false", false},
        {"{\"b\":true}", "Mcp-Param-B", "True", false},
        {"{\"b\":true}", "Mcp-Param-B", "1", false},
        {"{\"b\":true}", NULL, NULL, false},
    };

    CHECK("t", rows);
}

static void headers_without_a_value(void **state)
{
    static const struct row rows[] = {
        {"{\"s\":null}", NULL, NULL, true},
        {"{\"s\":[]}", NULL, NULL, true}, /* the tool refuses these */
        {"{\"s\":{}}", NULL, NULL, true},
        {"{}", "Mcp-Param-S", "x", false},
        {"{}", "Mcp-Param-S", "", false},
        {"{\"s\":null}", "Mcp-Param-S", "x", false},
        {"{\"s\":null}", "Mcp-Param-S", "null", false},
        {"{\"s\":null}", "Mcp-Param-S", "", false},
        {"{\"s\":[\"x\"]}", "Mcp-Param-S", "x", false},
        {"{\"s\":[]}", "Mcp-Param-S", "[]", false},
        {"{\"s\":{}}", "Mcp-Param-S", "{}", false},
    };

    CHECK("t", rows);
}

static void nested_ones(void **state)
{
    static const struct row rows[] = {
        {"{\"in\":{\"d\":{\"n\":\"x\"}}}", "Mcp-Param-Nested-Name", "x", true},
        {"{\"in\":{\"d\":{\"n\":\"x\"}}}", "Mcp-Param-Nested-Name", "y", false},
        {"{\"in\":{\"d\":{\"n\":\"x\"}}}", NULL, NULL, false},
        {"{\"in\":{\"d\":{}}}", "Mcp-Param-Nested-Name", "x", false},
        {"{\"in\":{\"d\":null}}", "Mcp-Param-Nested-Name", "x", false},
        {"{\"in\":[{\"d\":{\"n\":\"x\"}}]}", "Mcp-Param-Nested-Name", "x", false},
        {"{}", "Mcp-Param-Nested-Name", "x", false},
        {"{\"n\":\"x\"}", NULL, NULL, true},
        {"{\"in\":{\"d\":{}}}", NULL, NULL, true},
    };

    CHECK("t", rows);
}

static void names_and_methods(void **state)
{
    static const struct row rows[] = {
        {"{}", "Mcp-Name", "t", true},
        {"{}", "Mcp-Name", " t\t", true},
        {"{}", "Mcp-Name", "=?base64?dA==?=", true},
        {"{}", "Mcp-Name", "=?base64?dB==?=", false},
        {"{}", "Mcp-Name", "T", false},
        {"{}", "Mcp-Name", "", false},
        {"{}", "Mcp-Name", NULL, false},
        {"{}", "Mcp-Method", "tools/call", true},
        {"{}", "Mcp-Method", "\ttools/call ", true},
        {"{}", "Mcp-Method", "TOOLS/CALL", false},
        {"{}", "Mcp-Method", "=?base64?dG9vbHMvY2FsbA==?=", false}, /* no base64 for methods */
        {"{}", "Mcp-Method", NULL, false},
        {"{}", "MCP-Protocol-Version", NULL, false},
    };
    static const struct row strange[] = {
        {"{}", "Mcp-Name", "=?base64?w6Q=?=", true},
        {"{}", "Mcp-Name", "ä", false},
        {"{}", "Mcp-Name", "\xe4", false},
    };

    CHECK("t", rows);
    CHECK("ä", strange);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(texts),       TEST(sentinels),         TEST(numbers_and_booleans),
        TEST(nested_ones), TEST(names_and_methods), TEST(headers_without_a_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
