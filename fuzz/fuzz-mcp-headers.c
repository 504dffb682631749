/* fuzz-mcp-headers - the headers with which a modern client repeats parts of its request.
 *
 * An input is lines `Name: value`, an empty line, and a body; the two that every request needs have
 * their right values when the input does not name them. Asserted: a handler runs only when each
 * header that its request needs says what the body says, by a second implementation of the rules;
 * and a refusal is an error, told once. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"
#include "mcp-fixture.h"
#include "mcp/exchange.h"
#include "mcp/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADERS_MAX = 16 };

struct sent { /* one HTTP request */
    struct {
        const char *name, *value;
    } headers[HEADERS_MAX];
    size_t  n;
    json_t *body;
    bool    finished;
};

/* ---- the second implementation ---- */

/* What a value stands for: the text as it is, or what its sentinel holds; NULL when the sentinel is
 * not the one that would be made of it, or a letter is none for headers. */
static char *meant(const char *value)
{
    static const char begin[] = "=?base64?", end[] = "?=";
    size_t            size;

    size = strlen(value);
    for (size_t i = 0; i < size; i++)
        if (value[i] != '\t' && (value[i] < 0x20 || value[i] > 0x7e))
            return NULL;
    if (size < strlen(begin) + strlen(end) || !str_starts(value, begin) ||
        strcmp(value + size - strlen(end), end) != 0)
        return strdup(value);
    autofree uint8_t *data =
        base64_decode(value + strlen(begin), size - strlen(begin) - strlen(end), &size);
    autofree char *text = data ? strndup((char *)data, size) : NULL;
    autofree char *encoded = text ? base64_encode(text, strlen(text)) : NULL;
    autofree char *sentinel = text ? str_format("%s%s%s", begin, encoded, end) : NULL;
    return sentinel && strcmp(sentinel, value) == 0 ? strdup(text) : NULL;
}

static const char *on_header(void *owner, const char *name)
{
    const struct sent *s = owner;

    for (size_t i = 0; i < s->n; i++)
        if (strcasecmp(s->headers[i].name, name) == 0)
            return s->headers[i].value;
    return NULL;
}

/* A list or an object has no header either. */
static void must_say(struct sent *s, const char *header, const json_t *value)
{
    const char    *found = on_header(s, header);
    autofree char *text = found ? meant(found) : NULL;

    if (!value || json_is_null(value) || json_is_object(value) || json_is_array(value)) {
        assert(!found);
        return;
    }
    assert(text);
    if (json_is_string(value))
        assert(strcmp(text, json_string_value(value)) == 0);
    else if (json_is_boolean(value))
        assert(strcmp(text, json_is_true(value) ? "true" : "false") == 0);
    else
        assert(strtod(text, NULL) == json_number_value(value));
}

/* The request was let through: were its headers right? */
static void check_let_through(struct sent *s)
{
    const json_t *params = json_object_get(s->body, "params");
    const json_t *a = json_object_get(params, "arguments"), *inner = json_object_get(a, "a");
    const char   *name = rpc_string(params, "name");

    must_say(s, "Mcp-Method", json_object_get(s->body, "method"));
    must_say(s, "Mcp-Name", json_object_get(params, "name"));
    if (strcmp(name, "echo") == 0) {
        must_say(s, "Mcp-Param-Text", json_object_get(a, "text"));
        must_say(s, "Mcp-Param-Times", json_object_get(a, "times"));
    }
    if (strcmp(name, "nested") == 0) {
        must_say(s, "Mcp-Param-B", json_object_get(inner, "b"));
        must_say(s, "Mcp-Param-C", json_object_get(inner, "c"));
    }
}

/* ---- the transport ---- */

static void on_send(void *owner, json_t *message)
{
    struct sent *s = owner;

    assert(!s->finished && rpc_string(message, "method"));
}

/* tools/call answers with a result only when its tool was reached. */
static void on_finish(void *owner, int status, json_t *message)
{
    struct sent *s = owner;
    const char  *method = rpc_string(s->body, "method");

    assert(!s->finished && status >= 200 && status < 500);
    s->finished = true;
    if (json_object_get(message, "result") && method && strcmp(method, "tools/call") == 0)
        check_let_through(s);
}

static const struct mcp_exchange_ops ops = {
    .send = on_send, .finish = on_finish, .header = on_header};

static void add_header(struct sent *s, const char *name, const char *value)
{
    if (s->n < HEADERS_MAX && value && !on_header(s, name)) {
        s->headers[s->n].name = name;
        s->headers[s->n++].value = value;
    }
}

/* As a transport hands it over: no blanks around it. */
static char *trimmed(char *value)
{
    size_t size;

    value += strspn(value, " \t");
    size = strlen(value);
    while (size > 0 && strchr(" \t", value[size - 1]))
        value[--size] = '\0';
    return value;
}

/* Cuts the text into headers; the body, or NULL. */
static char *take_head(struct sent *s, char *text)
{
    for (char *line = text; line;) {
        char *end = strchr(line, '\n'), *colon;
        if (!end)
            return NULL;
        *end = '\0';
        if (end == line)
            return end + 1;
        colon = strchr(line, ':');
        if (colon) {
            *colon = '\0';
            add_header(s, line, trimmed(colon + 1));
        }
        line = end + 1;
    }
    return NULL;
}

static void ask(struct event_base *base, struct sent *s)
{
    struct mcp_server   *server = fixture_new(base);
    struct mcp_origin    from = {.server = server, .principal = "", .on_http = true};
    struct mcp_exchange *x;

    add_header(s, "MCP-Protocol-Version", mcp_revision_modern()->date);
    add_header(s, "Mcp-Method", rpc_string(s->body, "method"));
    x = mcp_exchange_start(&from, s->body, &ops, s);
    assert(!x == s->finished);
    if (x)
        check_let_through(s);
    mcp_server_free(server);
    assert(s->finished && fixture_calls_open() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct event_base *base;
    autofree char            *text = strndup((const char *)data, size);
    struct sent               s = {0};
    char                     *body = take_head(&s, text);
    struct err                e;

    base = base ? base : event_base_new();
    s.body = body ? json_parse(body, strlen(body), &e) : NULL;
    if (s.body)
        ask(base, &s);
    json_decref(s.body);
    return 0;
}
