#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "pipe/frame.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* The grammar once more, written by hand from docs/pipe.md: who may send what, and how long. */
static const struct rule {
    enum frame_type type;
    const char     *name;
    unsigned        senders;
    size_t          min, max;
} rules[] = {
    {FRAME_HELLO, "hello", PEER_SERVER | PEER_INIT, 8, 8},
    {FRAME_DATA, "data", PEER_SERVER | PEER_INIT, 1, 65536},
    {FRAME_END, "end", PEER_SERVER | PEER_INIT, 0, 0},
    {FRAME_CREDIT, "credit", PEER_SERVER | PEER_INIT, 4, 4},
    {FRAME_SPAWN, "spawn", PEER_SERVER, 1, 1048576},
    {FRAME_SIGNAL, "signal", PEER_SERVER, 4, 4},
    {FRAME_WRITE_FILE, "write-file", PEER_SERVER, 1, 8192},
    {FRAME_DIAL, "dial", PEER_SERVER, 2, 2},
    {FRAME_READ_FILE, "read-file", PEER_SERVER, 13, 8192},
    {FRAME_SCAN, "scan", PEER_SERVER, 13, 8192},
    {FRAME_STARTED, "started", PEER_INIT, 0, 0},
    {FRAME_EXITED, "exited", PEER_INIT, 1, 64},
    {FRAME_DONE, "done", PEER_INIT, 0, 0},
    {FRAME_ERROR, "error", PEER_INIT | PEER_JAIL, 1, 1024},
    {FRAME_OPENED, "opened", PEER_INIT, 8, 8},
    {FRAME_ROWS, "rows", PEER_INIT, 22, 65536},
    {FRAME_SCANNED, "scanned", PEER_INIT, 1, 1},
    {FRAME_CONNECT, "connect", PEER_INIT, 18, 18},
    {FRAME_RESET, "reset", PEER_SERVER | PEER_INIT, 0, 0},
    {FRAME_LOOKUP, "lookup", PEER_INIT, 12, 4096},
    {FRAME_FOUND, "found", PEER_SERVER, 12, 4096},
    {FRAME_PLAN, "plan", PEER_SERVER, 2, 1048576},
    {FRAME_GROUP_MAKE, "group-make", PEER_SERVER, 0, 0},
    {FRAME_GROUP_END, "group-end", PEER_SERVER, 0, 0},
    {FRAME_GROUP_ENDED, "group-ended", PEER_JAIL, 1, 64},
    {FRAME_WALLS, "walls", PEER_JAIL, 2, 16384},
    {FRAME_ATTACH, "attach", PEER_SERVER, 12, 8192},
    {FRAME_ATTACHED, "attached", PEER_JAIL, 0, 0},
    {FRAME_GROUP_RUN, "group-run", PEER_SERVER, 0, 0},
    {FRAME_GROUP_DROP, "group-drop", PEER_SERVER, 0, 0},
    {FRAME_ATTACH, "attach", PEER_SERVER, 12, 8192},
    {FRAME_ATTACHED, "attached", PEER_JAIL, 0, 0},
};

static const enum peer peers[] = {PEER_SERVER, PEER_INIT, PEER_JAIL};

static const struct rule *rule_of(unsigned type)
{
    for (size_t i = 0; i < N(rules); i++)
        if (rules[i].type == type)
            return &rules[i];
    return NULL;
}

static void header(uint8_t out[FRAME_HEADER], unsigned type, size_t size)
{
    frame_write_header(out, &(struct frame){.type = type, .stream = 1, .channel = 7, .size = size});
}

static void the_layout_is_fixed(void **state)
{
    static const uint8_t expected[] = {3, 0, 0, 0, 8, 2, 0, 0, 4, 3, 2, 1, 'a', 'b', 'c'};
    autobuf struct buf   b;

    (void)state;
    buf_init(&b, sizeof expected);
    struct frame f = {FRAME_DATA, STREAM_ERR, 0x01020304, (const uint8_t *)"abc", 3};
    assert_int_equal(frame_add(&b, &f), 0);
    assert_int_equal(b.size, sizeof expected);
    assert_memory_equal(b.data, expected, sizeof expected);
    assert_int_equal(frame_add(&b, &f), -1);
    assert_int_equal(b.size, sizeof expected);
}

static void every_type_goes_round(void **state)
{
    static uint8_t payload[FRAME_MAX];

    (void)state;
    memset(payload, 'p', sizeof payload);
    for (size_t i = 0; i < N(rules); i++) {
        autobuf struct buf b;
        struct frame       in = {rules[i].type, STREAM_OUT, 0xffffffff, payload, rules[i].max}, out;
        struct err         e = {0};
        enum peer          from = rules[i].senders & -rules[i].senders;

        buf_init(&b, FRAME_HEADER + FRAME_MAX);
        assert_int_equal(frame_add(&b, &in), 0);
        assert_int_equal(frame_parse(b.data, b.size, from, &out, &e), b.size);
        assert_int_equal(out.type, in.type);
        assert_int_equal(out.stream, in.stream);
        assert_int_equal(out.channel, in.channel);
        assert_int_equal(out.size, in.size);
        assert_ptr_equal(out.payload, b.data + FRAME_HEADER);
        assert_memory_equal(out.payload, payload, in.size);
    }
}

/* All 256 numbers from each peer: known and allowed, or refused. */
static void types_belong_to_senders(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        const struct rule *rule = rule_of(type);

        if (rule)
            assert_string_equal(frame_type_name(type), rule->name);
        else
            assert_null(frame_type_name(type));
        for (size_t p = 0; p < N(peers); p++) {
            uint8_t      bytes[FRAME_HEADER];
            struct frame f;
            struct err   e = {0};
            bool         allowed = rule && (rule->senders & peers[p]);

            header(bytes, type, rule ? rule->min : 0);
            long n = frame_parse(bytes, sizeof bytes, peers[p], &f, &e);
            assert_int_equal(n, !allowed ? -1 : rule->min ? 0 : FRAME_HEADER);
            assert_int_equal(e.kind, allowed ? ERR_NONE : ERR_INVALID);
        }
    }
}

/* A length out of bounds is refused on sight of the header, not after that many bytes. */
static void lengths_are_bounded(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(rules); i++) {
        const size_t sizes[] = {0, rules[i].min, rules[i].max, rules[i].max + 1, FRAME_MAX};
        enum peer    from = rules[i].senders & -rules[i].senders;

        for (size_t k = 0; k < N(sizes); k++) {
            uint8_t      bytes[FRAME_HEADER];
            struct frame f;
            bool         fits = sizes[k] >= rules[i].min && sizes[k] <= rules[i].max;

            header(bytes, rules[i].type, sizes[k] > FRAME_MAX ? 0 : sizes[k]);
            if (sizes[k] > FRAME_MAX) /* what our own writer would never write */
                memcpy(bytes, "\x01\x00\x10\x00", 4);
            long n = frame_parse(bytes, sizeof bytes, from, &f, NULL);
            assert_int_equal(n, !fits ? -1 : sizes[k] ? 0 : FRAME_HEADER);
        }
        uint8_t      bytes[FRAME_HEADER];
        struct frame f;

        header(bytes, rules[i].type, 0);
        memset(bytes, 0xff, 4);
        assert_int_equal(frame_parse(bytes, sizeof bytes, from, &f, NULL), -1);
    }
}

static void headers_are_plain(void **state)
{
    static const struct {
        size_t  at;
        uint8_t value;
        bool    good;
    } cases[] = {{5, 0, true},  {5, 2, true},  {5, 3, false},  {5, 255, false},
                 {6, 1, false}, {7, 1, false}, {8, 255, true}, {11, 255, true}};

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        uint8_t      bytes[FRAME_HEADER];
        struct frame f;

        header(bytes, FRAME_END, 0);
        bytes[cases[i].at] = cases[i].value;
        assert_int_equal(frame_parse(bytes, sizeof bytes, PEER_INIT, &f, NULL),
                         cases[i].good ? FRAME_HEADER : -1);
    }
}

/* At every length short of the whole, more is asked for; what lies behind is left alone. */
static void partial_input_waits(void **state)
{
    autobuf struct buf b;
    struct frame       f = {FRAME_CREDIT, 1, 7, (const uint8_t *)"\1\2\3\4", 4}, out;

    (void)state;
    buf_init(&b, 100);
    frame_add(&b, &f);
    size_t whole = b.size;
    frame_add(&b, &f);
    for (size_t n = 0; n <= b.size; n++) {
        autobuf struct buf part; /* its own allocation, so that ASan sees a read past it */

        buf_init(&part, 100);
        if (n > 0)
            buf_add(&part, b.data, n);
        assert_int_equal(frame_parse(part.data, n, PEER_SERVER, &out, NULL), n < whole ? 0 : whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_layout_is_fixed),     cmocka_unit_test(every_type_goes_round),
        cmocka_unit_test(types_belong_to_senders), cmocka_unit_test(lengths_are_bounded),
        cmocka_unit_test(headers_are_plain),       cmocka_unit_test(partial_input_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
