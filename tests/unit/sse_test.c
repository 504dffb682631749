#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "transport/sse.h"

struct wire { /* what a client would see */
    struct buf seen;
    int        ends;
};

static void wire_write(void *owner, const void *data, size_t size)
{
    struct wire *w = owner;

    assert_int_equal(w->ends, 0);
    assert_int_equal(buf_add(&w->seen, data, size), 0);
}

static void wire_end(void *owner)
{
    ((struct wire *)owner)->ends++;
}

static const struct sse_sink wire_sink = {.write = wire_write, .end = wire_end};

static struct wire *wire_new(void)
{
    struct wire *w = calloc(1, sizeof *w);

    buf_init(&w->seen, 64 << 20);
    return w;
}

static void wire_free(struct wire *w)
{
    buf_done(&w->seen);
    free(w);
}

/* Also forgets what was seen. */
static void assert_seen(struct wire *w, const char *text)
{
    assert_string_equal(buf_text(&w->seen), text);
    buf_drop(&w->seen, w->seen.size);
}

static void without_memory(void **state)
{
    struct sse   s;
    struct wire *w = wire_new();

    (void)state;
    sse_init(&s, 0, false);
    sse_send(&s, "{\"lost\":1}");
    sse_attach(&s, &wire_sink, w);
    sse_send(&s, "{}");
    assert_seen(w, "data: {}\n\n");
    assert_false(s.has_id);
    assert_int_equal(s.n, 0);
    sse_end(&s);
    assert_int_equal(w->ends, 1);
    sse_send(&s, "{}");
    sse_done(&s);
    assert_int_equal(w->ends, 1);
    wire_free(w);
}

static void comes_back(void **state)
{
    struct sse   s;
    struct wire *w = wire_new(), *again = wire_new();

    (void)state;
    sse_init(&s, 7, true);
    sse_attach(&s, &wire_sink, w);
    sse_prime(&s, 500);
    assert_seen(w, "id: 7-0\nretry: 500\ndata: \n\n");
    sse_send(&s, "1");
    assert_seen(w, "id: 7-1\ndata: 1\n\n");
    sse_detach(&s); /* the connection was lost */
    sse_send(&s, "2");
    sse_send(&s, "3");
    assert_seen(w, "");
    assert_int_equal(w->ends, 0);
    sse_attach(&s, &wire_sink, again);
    sse_replay(&s, 1);
    assert_seen(again, "id: 7-2\ndata: 2\n\nid: 7-3\ndata: 3\n\n");
    sse_send(&s, "4");
    assert_seen(again, "id: 7-4\ndata: 4\n\n");
    sse_done(&s);
    assert_int_equal(again->ends, 1);
    wire_free(w);
    wire_free(again);
}

static void comes_back_after_its_end(void **state)
{
    struct sse   s;
    struct wire *w = wire_new(), *again = wire_new();

    (void)state;
    sse_init(&s, 1, true);
    sse_attach(&s, &wire_sink, w);
    sse_prime(&s, 1);
    sse_drop(&s);
    assert_int_equal(w->ends, 1);
    sse_send(&s, "1");
    sse_end(&s);
    sse_attach(&s, &wire_sink, again);
    sse_replay(&s, 0);
    assert_seen(again, "id: 1-1\ndata: 1\n\n");
    assert_int_equal(again->ends, 1);
    sse_done(&s);
    wire_free(w);
    wire_free(again);
}

static void one_sink_at_a_time(void **state)
{
    struct sse   s;
    struct wire *w = wire_new(), *other = wire_new();

    (void)state;
    sse_init(&s, 1, true);
    sse_attach(&s, &wire_sink, w);
    sse_attach(&s, &wire_sink, other);
    assert_int_equal(w->ends, 1);
    sse_send(&s, "1");
    assert_int_equal(w->seen.size, 0);
    assert_seen(other, "id: 1-1\ndata: 1\n\n");
    sse_done(&s);
    wire_free(w);
    wire_free(other);
}

static void forgets_the_oldest(void **state)
{
    struct sse   s;
    struct wire *w = wire_new();

    (void)state;
    sse_init(&s, 1, true);
    for (int i = 0; i < SSE_EVENTS_MAX + 10; i++)
        sse_send(&s, "x");
    assert_int_equal(s.n, SSE_EVENTS_MAX);
    sse_attach(&s, &wire_sink, w);
    sse_replay(&s, 0);
    assert_memory_equal(w->seen.data, "id: 1-11\n", 9);
    sse_done(&s);
    wire_free(w);
}

/* What is gone is not skipped in silence. */
static void knows_what_it_forgot(void **state)
{
    struct sse s;

    (void)state;
    sse_init(&s, 1, true);
    assert_true(sse_can_replay(&s, 0));  /* nothing came yet */
    assert_false(sse_can_replay(&s, 1)); /* that id was never given */
    for (int i = 0; i < SSE_EVENTS_MAX; i++)
        sse_send(&s, "x");
    assert_true(sse_can_replay(&s, 0));
    sse_send(&s, "x"); /* the first one goes */
    assert_false(sse_can_replay(&s, 0));
    assert_true(sse_can_replay(&s, 1));
    assert_true(sse_can_replay(&s, SSE_EVENTS_MAX + 1));
    assert_false(sse_can_replay(&s, SSE_EVENTS_MAX + 2));
    sse_end(&s);
    assert_false(sse_can_replay(&s, 0));
    assert_true(sse_can_replay(&s, 5));
    sse_done(&s);
}

static void bounds_its_bytes_but_keeps_the_newest(void **state)
{
    struct sse s;
    size_t     half = SSE_BYTES_MAX / 2 + 1;
    char      *big = malloc(4 * half + 1);

    (void)state;
    memset(big, 'x', 4 * half);
    big[half] = '\0';
    sse_init(&s, 1, true);
    sse_send(&s, big);
    sse_send(&s, big);
    assert_int_equal(s.n, 1);
    big[half] = 'x';
    big[4 * half] = '\0';
    sse_send(&s, big);
    assert_int_equal(s.n, 1);
    assert_true(s.bytes > SSE_BYTES_MAX);
    sse_send(&s, "small");
    assert_int_equal(s.n, 1);
    assert_true(s.bytes < 100);
    sse_done(&s);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.bytes, 0);
    free(big);
}

static void ids(void **state)
{
    static const char *const bad[] = {
        "",     "-",    "1",    "1-",   "-1",    "1-x",          "x-1",
        "1-1 ", " 1-1", "1--1", "+1-1", "1-1-1", "1234567890-1", "1-1234567890123456789",
        NULL};
    unsigned stream = 5;
    uint64_t seq = 5;

    (void)state;
    for (size_t i = 0; bad[i]; i++)
        if (sse_parse_id(bad[i], &stream, &seq) == 0)
            fail_msg("'%s' passed", bad[i]);
    assert_int_equal(stream, 5);
    assert_int_equal(seq, 5);
    assert_int_equal(sse_parse_id("12-340", &stream, &seq), 0);
    assert_int_equal(stream, 12);
    assert_int_equal(seq, 340);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory),
        cmocka_unit_test(comes_back),
        cmocka_unit_test(comes_back_after_its_end),
        cmocka_unit_test(one_sink_at_a_time),
        cmocka_unit_test(forgets_the_oldest),
        cmocka_unit_test(knows_what_it_forgot),
        cmocka_unit_test(bounds_its_bytes_but_keeps_the_newest),
        cmocka_unit_test(ids),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
