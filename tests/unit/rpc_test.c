#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/str.h"
#include "mcp/rpc.h"

/* ---- what is received ---- */

/* The refusal as "CODE" or "CODE ID"; "taken" when there is none. */
static char *refusal_of(const char *text, size_t size)
{
    json_t          *refusal = NULL;
    autojson json_t *message = rpc_read(text, size, &refusal);
    const json_t    *error, *id;
    char            *said;

    if (message) {
        assert_null(refusal);
        return strdup("taken");
    }
    error = json_object_get(refusal, "error");
    id = json_object_get(refusal, "id");
    assert_string_equal(rpc_string(refusal, "jsonrpc"), "2.0");
    assert_true(rpc_string(error, "message")[0] != '\0');
    autofree char *dumped = id ? json_dumps(id, JSON_ENCODE_ANY | JSON_COMPACT) : strdup("");
    said = str_format("%lld%s%s", (long long)json_integer_value(json_object_get(error, "code")),
                      id ? " " : "", dumped);
    json_decref(refusal);
    return said;
}

#define REQUEST(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\""

static void reads(void **state)
{
    static const struct {
        const char *text, *said;
    } rows[] = {
        {REQUEST("1") "}", "taken"},
        {REQUEST("9223372036854775807") "}", "taken"},
        {"[]", "taken"},
        {"7", "taken"},
        /* not JSON: no id */
        {"", "-32700"},
        {"nonsense", "-32700"},
        {REQUEST("1"), "-32700"},
        {REQUEST("1") "} x", "-32700"},
        {REQUEST("1") ",\"a\":01}", "-32700"},
        {REQUEST("1") ",\"a\":\"\xff\"}", "-32700"},
        {REQUEST("1") ",\"a\":\"\\ud800\"}", "-32700"},
        {REQUEST("1") ",\"a\":1,\"a\":2} x", "-32700"},
        {REQUEST("1") ",\"a\":1,\"a\":2}}", "-32700"},
        {REQUEST("1") ",\"a\":1,\"a\":\"2}", "-32700"},
        {REQUEST("1") ",\"a\":1,\"a\":2", "-32700"},
        {REQUEST("1") ",\"a\":1,\"a\":\"\\", "-32700"},
        {REQUEST("1") ",\"a\":[1e999}", "-32700"},
        {"\"\\u0000\"", "-32700"}, /* JSON, but neither: nothing is lost by calling it that */
        {"99999999999999999999", "-32700"},
        /* JSON that is refused: with the id */
        {REQUEST("1") ",\"a\":\"\\u0000\"}", "-32600 1"},
        {REQUEST("1") ",\"a\\u0000\":1}", "-32600 1"},
        {REQUEST("1") ",\"a\":99999999999999999999}", "-32600 1"},
        {REQUEST("1") ",\"a\":-99999999999999999999}", "-32600 1"},
        {REQUEST("1") ",\"a\":1e999}", "-32600 1"},
        {REQUEST("1") ",\"params\":{\"a\":1,\"a\":2}}", "-32600 1"},
        {" {\"a\":1e999 , \"id\" : \"x\\\"}\\n\" ,\t\"method\":\"ping\"} \r\n",
         "-32600 \"x\\\"}\\n\""},
        {"{\"a\":1e999,\"id\":-9223372036854775808,\"method\":\"x\"}",
         "-32600 -9223372036854775808"},
        {REQUEST("\"\\u0000\"") "}", "-32600 \"\\u0000\""},
        /* an id within others, or within texts, is none */
        {"{\"a\":1e999,\"b\":{\"id\":1},\"method\":\"x\"}", "-32600"},
        {"{\"a\":1e999,\"b\":[{\"id\":1}],\"method\":\"x\"}", "-32600"},
        {"{\"a\":1e999,\"b\":\"\\\"id\\\":1\",\"method\":\"x\"}", "-32600"},
        {"{\"a\":1e999,\"b\":\"id\",\"c\":1,\"method\":\"x\"}", "-32600"},
        {REQUEST("1") ",\"b\":{\"id\":2},\"a\":1e999}", "-32600 1"},
        /* two ids, or none that can be echoed */
        {REQUEST("1") ",\"id\":2}", "-32600"},
        {REQUEST("1") ",\"id\":1}", "-32600"},
        {REQUEST("99999999999999999999") "}", "-32600"},
        {REQUEST("1.5") ",\"a\":1e999}", "-32600"},
        {REQUEST("1e3") ",\"a\":1e999}", "-32600"},
        {REQUEST("null") ",\"a\":1e999}", "-32600"},
        {REQUEST("[1]") ",\"a\":1e999}", "-32600"},
        {REQUEST("\"\\u00") ",\"a\":1e999}", "-32700"},
        /* answers are not answered, and notifications have none */
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1e999}}", "-32600"},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"a\":1e999}}", "-32600"},
        /* a batch is refused as a whole */
        {"[" REQUEST("1") ",\"a\":1e999}]", "-32600"},
        {"[1e999,\"method\":\"x\",\"id\":1]", "-32600"},
        {"[1e999", "-32700"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        /* in memory that ends where the text does */
        size_t         size = strlen(rows[i].text);
        autofree char *text = memcpy(malloc(size + 1), rows[i].text, size);
        autofree char *said = refusal_of(text, size);
        if (strcmp(said, rows[i].said) != 0)
            fail_msg("%s: %s", rows[i].text, said);
    }
}

static char *repeated(const char *piece, size_t times, char *ret)
{
    for (size_t i = 0; i < times; i++)
        ret = stpcpy(ret, piece);
    return ret;
}

static void reads_bombs(void **state)
{
    enum { MANY = 1 << 20 };
    autofree char *text = malloc(8 * MANY);
    char          *at;
    static const struct {
        const char *begin, *piece, *end, *said;
    } rows[] = {
        {"", "[", "", "-32700"},
        {"", "{\"a\":", "", "-32700"},
        {REQUEST("7") ",\"a\":", "[", "}", "-32700"},
        {REQUEST("7") ",\"a\":", "9", "}", "-32600 7"},
        {REQUEST("7") ",\"a\":", "-", "}", "-32700"},
        {REQUEST("7") ",\"a\":\"", "\\u0000", "\"}", "-32600 7"},
        {REQUEST("7") ",\"a\":1e999,\"b\":\"", "\\\"", "\"}", "-32600 7"},
        {"{\"method\":\"x\",\"id\":", "9", "}", "-32600"},
        {"{\"method\":\"x\",\"a\":1e999", ",\"id\":\"", "\"}", "-32700"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        at = repeated(rows[i].piece, MANY, stpcpy(text, rows[i].begin));
        at = stpcpy(at, rows[i].end);
        autofree char *said = refusal_of(text, (size_t)(at - text));
        if (strcmp(said, rows[i].said) != 0)
            fail_msg("%s%s…%s: %s", rows[i].begin, rows[i].piece, rows[i].end, said);
    }
    at = repeated("[", MANY, stpcpy(text, REQUEST("7") ",\"a\":"));
    at = stpcpy(repeated("]", MANY, at), "}");
    autofree char *said = refusal_of(text, (size_t)(at - text));
    assert_string_equal(said, "-32600 7");
}

/* ---- what a message is ---- */

static void parses(void **state)
{
    static const struct {
        const char *text;
        int         kind; /* -1: none */
        const char *id;
    } rows[] = {
        {REQUEST("1") "}", RPC_REQUEST, "1"},
        {REQUEST("\"\"") "}", RPC_REQUEST, "\"\""},
        {REQUEST("0") ",\"params\":{}}", RPC_REQUEST, "0"},
        {REQUEST("1730000000000000000") "}", RPC_REQUEST, "1730000000000000000"},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", RPC_NOTIFICATION, NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", RPC_RESPONSE, "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", RPC_RESPONSE, "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{},\"result\":{}}", -1, "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}", -1, "1"},
        {"{\"jsonrpc\":\"2.0\",\"result\":{}}", -1, NULL},
        {"{\"jsonrpc\":\"2.0\"}", -1, NULL},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", -1, "1"},
        {"{\"id\":1,\"method\":\"x\"}", -1, "1"},
        {REQUEST("null") "}", -1, NULL},
        {REQUEST("1.0") "}", -1, NULL},
        {REQUEST("true") "}", -1, NULL},
        {REQUEST("{}") "}", -1, NULL},
        {REQUEST("1") ",\"params\":[]}", -1, "1"},
        {REQUEST("1") ",\"params\":null}", -1, "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", -1, "1"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", -1, "1"},
        {"[]", -1, NULL},
        {"7", -1, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rpc       rpc;
        struct err       e = {0};
        autojson json_t *message = json_parse(rows[i].text, strlen(rows[i].text), NULL);
        int              r = rpc_parse(message, &rpc, &e);
        autofree char   *id = rpc.id ? json_dumps(rpc.id, JSON_ENCODE_ANY) : NULL;
        if ((r < 0 ? -1 : (int)rpc.kind) != rows[i].kind || !id != !rows[i].id ||
            (id && strcmp(id, rows[i].id) != 0) || (r < 0) != (e.msg[0] != '\0'))
            fail_msg("%s: %d, id %s, %s", rows[i].text, r, id, e.msg);
    }
}

/* ---- what is sent ---- */

static void must_be(json_t *made_take, const char *text)
{
    autofree char *dumped = json_dumps(made_take, JSON_COMPACT | JSON_ENCODE_ANY);

    json_decref(made_take);
    assert_string_equal(dumped ? dumped : "nothing", text);
}

static void writes(void **state)
{
    autojson json_t *id = json_integer(INT64_MAX), *name = json_string("ä");

    (void)state;
    must_be(rpc_result(id, json_object()),
            "{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,\"result\":{}}");
    must_be(rpc_result(name, json_object()), "{\"jsonrpc\":\"2.0\",\"id\":\"ä\",\"result\":{}}");
    must_be(rpc_error(NULL, -1, "m", NULL),
            "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-1,\"message\":\"m\"}}");
    must_be(
        rpc_error(name, -1, "cut \xc3", json_true()),
        "{\"jsonrpc\":\"2.0\",\"id\":\"ä\",\"error\":{\"code\":-1,\"message\":\"cut \xef\xbf\xbd\","
        "\"data\":true}}");
    must_be(rpc_notification("x", NULL), "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}");
    must_be(rpc_request("srv-1", "x", json_object()),
            "{\"jsonrpc\":\"2.0\",\"id\":\"srv-1\",\"method\":\"x\",\"params\":{}}");
    must_be(rpc_pack("{s:o*, s:o*, s:o*}", "a", rpc_text(NULL), "b", rpc_number(NAN), "c",
                     rpc_text("\xff")),
            "{\"c\":\"\xef\xbf\xbd\"}");
}

static void writes_numbers(void **state)
{
    static const double none[] = {NAN, -NAN, INFINITY, -INFINITY};

    (void)state;
    must_be(rpc_number(0), "0");
    must_be(rpc_number(-0.0), "0");
    must_be(rpc_number(50), "50");
    must_be(rpc_number(-3), "-3");
    must_be(rpc_number(0.5), "0.5");
    must_be(rpc_number(9007199254740992), "9007199254740992");
    must_be(rpc_number(1e300), "1.0000000000000001e300");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(rpc_number(none[i]));
}

static void counts_requests(void **state)
{
    static const struct {
        const char *text;
        size_t      n;
    } rows[] = {
        {"{\"id\":1,\"method\":\"a\"}", 1},
        {"{\"id\":\"1\",\"method\":\"a\"}", 1},
        {"{\"method\":\"a\"}", 0},
        {"{\"id\":1,\"result\":{}}", 0},
        {"{\"id\":1,\"method\":2}", 0},
        {"7", 0},
        {"[]", 0},
        {"[{\"id\":1,\"method\":\"a\"},{\"method\":\"a\"},7,{\"id\":2,\"method\":\"b\"}]", 2},
        {"[[{\"id\":1,\"method\":\"a\"}]]", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        autojson json_t *message = json_loads(rows[i].text, JSON_DECODE_ANY, NULL);
        assert_int_equal(rpc_count_requests(message), rows[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),          cmocka_unit_test(reads_bombs),
        cmocka_unit_test(parses),         cmocka_unit_test(writes),
        cmocka_unit_test(writes_numbers), cmocka_unit_test(counts_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
