#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "transport/http_head.h"

#define FIRST "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"

/* The status that a head is refused with, or 0. */
static int status_of(const char *text, size_t size)
{
    struct http_head h;
    struct http_scan scan = {0};
    const char      *why = NULL;
    char            *copy = malloc(size + 1);
    int              status;

    memcpy(copy, text, size);
    assert_int_equal(http_head_size(&scan, copy, size), size);
    status = http_head_parse(copy, size, &h, &why);
    assert_int_equal(status != 0, why != NULL);
    free(copy);
    return status;
}

static void heads(void **state)
{
    static const struct {
        const char *text;
        int         status;
    } rows[] = {
        {FIRST "\r\n", 0},
        {"POST /mcp HTTP/1.1\nHost: x\n\n", 0},
        {"GET http://a.b/mcp HTTP/1.1\r\nHost: a.b\r\n\r\n", 0},
        {"GET /mcp HTTP/1.0\r\n\r\n", 0},
        {FIRST "Content-Length: 2\r\n\r\n", 0},
        {FIRST "Content-Length:\t2 \r\n\r\n", 0},
        {FIRST "Transfer-Encoding: Chunked\r\n\r\n", 0},
        {FIRST "X: \xc3\xa4\r\n\r\n", 0},
        {FIRST "X:\r\n\r\n", 0},
        /* where a request ends must be beyond doubt */
        {FIRST "Content-Length: +2\r\n\r\n", 400},
        {FIRST "Content-Length: -2\r\n\r\n", 400},
        {FIRST "Content-Length: 2,2\r\n\r\n", 400},
        {FIRST "Content-Length: 2 2\r\n\r\n", 400},
        {FIRST "Content-Length: 0x2\r\n\r\n", 400},
        {FIRST "Content-Length: 2.\r\n\r\n", 400},
        {FIRST "Content-Length:\r\n\r\n", 400},
        {FIRST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n", 400},
        {FIRST "Content-Length: 2\r\ncontent-length: 3\r\n\r\n", 400},
        {FIRST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {FIRST "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", 400},
        {FIRST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {FIRST "Transfer-Encoding: chunked, chunked\r\n\r\n", 501},
        {FIRST "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {FIRST "Transfer-Encoding: xchunked\r\n\r\n", 501},
        {FIRST "Transfer-Encoding:\r\n\r\n", 501},
        {"POST /mcp HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {FIRST "Content-Length : 2\r\n\r\n", 400},
        {FIRST " Content-Length: 2\r\n\r\n", 400},
        {FIRST "X: y\r\n Content-Length: 2\r\n\r\n", 400},
        {FIRST "X: y\rContent-Length: 2\r\n\r\n", 400},
        {FIRST "Content-Length: 2\r\r\n\r\n", 400},
        {FIRST "Content-Length: 99999999999999999999\r\n\r\n", 413},
        {"POST /mcp HTTP/1.1\r\nHost : localhost\r\n\r\n", 400},
        {"POST /mcp HTTP/1.1\r\n\r\n", 400},
        /* and what is no head at all */
        {FIRST "no colon\r\n\r\n", 400},
        {FIRST ": no name\r\n\r\n", 400},
        {FIRST "X: a\x01\r\n\r\n", 400},
        {FIRST "X(: a\r\n\r\n", 400},
        {"POST\r\n\r\n", 400},
        {"POST /mcp\r\n\r\n", 400},
        {"POST  /mcp HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST /mcp  HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"P(ST /mcp HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST /m\x7f HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST http:///mcp HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"POST /mcp HTTP/2.0\r\nHost: x\r\n\r\n", 505},
        {"POST /mcp HTTP/1.10\r\nHost: x\r\n\r\n", 505},
        {"POST /mcp FTP/1.1\r\nHost: x\r\n\r\n", 400},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (status_of(rows[i].text, strlen(rows[i].text)) != rows[i].status)
            fail_msg("%d for: %s", status_of(rows[i].text, strlen(rows[i].text)), rows[i].text);
    assert_int_equal(status_of(FIRST "X: a\0b\r\n\r\n", sizeof FIRST "X: a\0b\r\n\r\n" - 1), 400);
    assert_int_equal(status_of("PO\0ST / HTTP/1.1\r\n\r\n", 20), 400);
}

static void facts(void **state)
{
    char text[] = "DELETE http://Host:80/mcp?a=b#c HTTP/1.1\r\nhost: h\r\nX-One: \t a b \t\r\n"
                  "Content-Length: 12\r\nConnection: foo, Close\r\nExpect: 100-Continue\r\n\r\n";
    struct http_head h;
    const char      *why;

    (void)state;
    assert_int_equal(http_head_parse(text, sizeof text - 1, &h, &why), 0);
    assert_string_equal(h.method, "DELETE");
    assert_string_equal(h.path, "/mcp");
    assert_int_equal(h.authority_size, 7);
    assert_memory_equal(h.authority, "Host:80", 7);
    assert_string_equal(http_head_find(&h, "Host"), "h");
    assert_string_equal(http_head_find(&h, "x-one"), "a b");
    assert_null(http_head_find(&h, "x-two"));
    assert_int_equal(h.length, 12);
    assert_false(h.keeps_alive);
    assert_true(h.expects_continue);
    assert_false(h.is_chunked);
}

static void connections_that_stay(void **state)
{
    static const struct {
        const char *text;
        bool        stays;
    } rows[] = {
        {"GET / HTTP/1.1\nHost: x\n\n", true},
        {"GET / HTTP/1.1\nHost: x\nConnection: close\n\n", false},
        {"GET / HTTP/1.1\nHost: x\nConnection: close\nConnection: keep-alive\n\n", false},
        {"GET / HTTP/1.1\nHost: x\nConnection: closed\n\n", true},
        {"GET / HTTP/1.0\n\n", false},
        {"GET / HTTP/1.0\nConnection: Keep-Alive\n\n", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct http_head h;
        const char      *why;
        char            *copy = strdup(rows[i].text);
        assert_int_equal(http_head_parse(copy, strlen(copy), &h, &why), 0);
        if (h.keeps_alive != rows[i].stays)
            fail_msg("%s", rows[i].text);
        free(copy);
    }
}

static void too_many_fields(void **state)
{
    char   text[4096] = FIRST;
    size_t n = strlen(text);

    (void)state;
    for (int i = 0; i < HTTP_FIELDS_MAX; i++)
        n += (size_t)sprintf(text + n, "X-%d: y\r\n", i);
    n += (size_t)sprintf(text + n, "\r\n");
    assert_int_equal(status_of(text, n), 431);
}

/* Byte by byte, the end is found where it is and not before. */
static void ends_of_heads(void **state)
{
    static const char text[] = "GET / HTTP/1.1\r\nA: b\n\r\nrest";
    struct http_scan  scan = {0};
    size_t            end = sizeof text - 1 - strlen("rest");

    (void)state;
    for (size_t n = 0; n < end; n++)
        assert_int_equal(http_head_size(&scan, text, n), 0);
    assert_int_equal(http_head_size(&scan, text, sizeof text - 1), end);
}

/* ---- chunks ---- */

/* The body that the chunks make, given in pieces of `step` bytes; NULL: refused, or not ended. */
static const char *unchunk(const char *text, size_t step, size_t max, int64_t *ret_rest)
{
    static char        body[256];
    struct http_chunks c = {0};
    size_t             size = 0, at = 0, length = strlen(text);

    while (at < length && c.state != CHUNK_OVER) {
        size_t  n = length - at < step ? length - at : step;
        int64_t taken = http_chunks_take(&c, text + at, n, body, &size, max);
        if (taken < 0) {
            *ret_rest = taken;
            return NULL;
        }
        at += (size_t)taken;
    }
    *ret_rest = (int64_t)(length - at);
    body[size] = '\0';
    return c.state == CHUNK_OVER ? body : NULL;
}

static void chunks(void **state)
{
    static const struct {
        const char *text, *body; /* body NULL: refused, or more is needed */
        int64_t     rest;
    } rows[] = {
        {"0\r\n\r\n", "", 0},
        {"3\r\nabc\r\n0\r\n\r\n", "abc", 0},
        {"1\r\na\r\n00b\r\nbcdefghijkl\r\n0\r\n\r\nGET", "abcdefghijkl", 3},
        {"A;x=y\r\n0123456789\r\n0;z\r\nTrailer: t\r\nU: v\r\n\r\n", "0123456789", 0},
        {"2\r\nab\r\n", NULL, 0},
        {"\r\n", NULL, HTTP_CHUNKS_BAD},
        {"x\r\n", NULL, HTTP_CHUNKS_BAD},
        {"-1\r\n", NULL, HTTP_CHUNKS_BAD},
        {"+1\r\na\r\n", NULL, HTTP_CHUNKS_BAD},
        {" 1\r\na\r\n", NULL, HTTP_CHUNKS_BAD},
        {"0x1\r\na\r\n", NULL, HTTP_CHUNKS_BAD},
        {"1\na\r\n", NULL, HTTP_CHUNKS_BAD},
        {"1\r\nab\r\n", NULL, HTTP_CHUNKS_BAD},
        {"1\r\na\n0\r\n\r\n", NULL, HTTP_CHUNKS_BAD},
        {"1\r\nb\rx", NULL, HTTP_CHUNKS_BAD},
        {"1;a\rb\r\nx", NULL, HTTP_CHUNKS_BAD},
        {"0\r\n\n", NULL, HTTP_CHUNKS_BAD},
        {"000000001\r\na\r\n", NULL, HTTP_CHUNKS_BAD},
        {"ffffffff\r\n0", NULL, HTTP_CHUNKS_TOO_LARGE},
        {"15\r\n0", NULL, HTTP_CHUNKS_TOO_LARGE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t step = 1; step < 8; step++) {
            int64_t     rest;
            const char *body = unchunk(rows[i].text, step, 20, &rest);
            if (!body != !rows[i].body || (body && strcmp(body, rows[i].body) != 0) ||
                rest != rows[i].rest)
                fail_msg("'%s' by %zu: '%s', %d", rows[i].text, step, body ? body : "(none)",
                         (int)rest);
        }
}

static void long_chunk_lines(void **state)
{
    char               line[5000], body[8];
    struct http_chunks c = {0};
    size_t             size = 0;

    (void)state;
    memset(line, 'x', sizeof line);
    memcpy(line, "1;", 2);
    assert_int_equal(http_chunks_take(&c, line, sizeof line, body, &size, 8), HTTP_CHUNKS_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads),
        cmocka_unit_test(facts),
        cmocka_unit_test(connections_that_stay),
        cmocka_unit_test(too_many_fields),
        cmocka_unit_test(ends_of_heads),
        cmocka_unit_test(chunks),
        cmocka_unit_test(long_chunk_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
