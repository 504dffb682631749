#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipe/message.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* One of each, packed with values that no other byte could be taken for. */
static int pack_spawn(struct buf *b)
{
    const char *argv[] = {"/bin/sh", "-c", "", NULL}, *env[] = {"A=1", NULL};

    return message_pack_spawn(b, &(struct message_spawn){7, true, "/workspace", argv, env});
}

static int pack_attach(struct buf *b)
{
    return message_pack_attach(b, &(struct message_attach){"/layer", "/workspace/x"});
}

static int pack_write_file(struct buf *b)
{
    return message_pack_write_file(b, &(struct message_write_file){0644, "/workspace/x"});
}

static int pack_exited(struct buf *b)
{
    return message_pack_exited(b, &(struct message_exited){-1, 9, 1ULL << 40, 3, 1, true});
}

static const struct message_connect somewhere = {{0x20, 1, [15] = 7}, 443};

static int pack_connect(struct buf *b)
{
    return message_pack_connect(b, &somewhere);
}

static int pack_error(struct buf *b)
{
    return message_pack_error(b, &(struct message_error){-2, "it is gone"});
}

static int pack_group_ended(struct buf *b)
{
    return message_pack_group_ended(b, &(struct message_group_ended){1, 2, UINT64_MAX, 4, true});
}

static int pack_number(struct buf *b)
{
    return message_pack_u32(b, 0xfffffffe);
}

static int pack_dial(struct buf *b)
{
    return message_pack_dial(b, &(struct message_dial){3000});
}

static int pack_read_file(struct buf *b)
{
    return message_pack_read_file(b, &(struct message_read_file){1ULL << 40, "files/x"});
}

static int pack_opened(struct buf *b)
{
    return message_pack_opened(b, &(struct message_opened){1ULL << 40});
}

static int pack_scan(struct buf *b)
{
    return message_pack_scan(b, &(struct message_scan){1000, 7, "files"});
}

static int pack_scanned(struct buf *b)
{
    return message_pack_scanned(b, &(struct message_scanned){true});
}

static int check_dial(const struct frame *f, struct err *e)
{
    struct message_dial m;

    TRY(message_unpack_dial(f, &m, e));
    assert_int_equal(m.port, 3000);
    return 0;
}

static int check_read_file(const struct frame *f, struct err *e)
{
    struct message_read_file m;

    TRY(message_unpack_read_file(f, &m, e));
    assert_int_equal(m.most, 1ULL << 40);
    assert_string_equal(m.path, "files/x");
    return 0;
}

static int check_opened(const struct frame *f, struct err *e)
{
    struct message_opened m;

    TRY(message_unpack_opened(f, &m, e));
    assert_int_equal(m.size, 1ULL << 40);
    return 0;
}

static int check_scan(const struct frame *f, struct err *e)
{
    struct message_scan m;

    TRY(message_unpack_scan(f, &m, e));
    assert_int_equal(m.entries, 1000);
    assert_int_equal(m.depth, 7);
    assert_string_equal(m.path, "files");
    return 0;
}

static int check_scanned(const struct frame *f, struct err *e)
{
    struct message_scanned m;

    TRY(message_unpack_scanned(f, &m, e));
    assert_true(m.cut);
    return 0;
}

static int check_spawn(const struct frame *f, struct err *e)
{
    struct message_spawn m;

    TRY(message_unpack_spawn(f, &m, e));
    assert_int_equal(m.group, 7);
    assert_true(m.has_stdin);
    assert_string_equal(m.cwd, "/workspace");
    assert_string_equal(m.argv[0], "/bin/sh");
    assert_string_equal(m.argv[1], "-c");
    assert_string_equal(m.argv[2], "");
    assert_null(m.argv[3]);
    assert_string_equal(m.env[0], "A=1");
    assert_null(m.env[1]);
    message_spawn_done(&m);
    return 0;
}

static int check_write_file(const struct frame *f, struct err *e)
{
    struct message_write_file m;

    TRY(message_unpack_write_file(f, &m, e));
    assert_int_equal(m.mode, 0644);
    assert_string_equal(m.path, "/workspace/x");
    return 0;
}

static int check_attach(const struct frame *f, struct err *e)
{
    struct message_attach m;

    TRY(message_unpack_attach(f, &m, e));
    assert_string_equal(m.source, "/layer");
    assert_string_equal(m.target, "/workspace/x");
    return 0;
}

static int check_exited(const struct frame *f, struct err *e)
{
    struct message_exited m;

    TRY(message_unpack_exited(f, &m, e));
    assert_int_equal(m.code, -1);
    assert_int_equal(m.signal, 9);
    assert_int_equal(m.cpu_us, 1ULL << 40);
    assert_int_equal(m.max_rss_bytes, 3);
    assert_int_equal(m.stdin_bytes, 1);
    assert_true(m.disk_full);
    return 0;
}

static int check_connect(const struct frame *f, struct err *e)
{
    struct message_connect m;

    TRY(message_unpack_connect(f, &m, e));
    assert_memory_equal(m.address, somewhere.address, 16);
    assert_int_equal(m.port, 443);
    return 0;
}

static int check_error(const struct frame *f, struct err *e)
{
    struct message_error m;

    TRY(message_unpack_error(f, &m, e));
    assert_int_equal(m.sys, -2);
    assert_string_equal(m.text, "it is gone");
    return 0;
}

static int check_group_ended(const struct frame *f, struct err *e)
{
    struct message_group_ended m;

    TRY(message_unpack_group_ended(f, &m, e));
    assert_int_equal(m.oom_kills, 1);
    assert_int_equal(m.forks_refused, 2);
    assert_int_equal(m.peak_bytes, UINT64_MAX);
    assert_int_equal(m.cpu_us, 4);
    assert_true(m.watched);
    return 0;
}

static int check_number(const struct frame *f, struct err *e)
{
    uint32_t v;

    TRY(message_unpack_u32(f, &v, e));
    assert_int_equal(v, 0xfffffffe);
    return 0;
}

static const struct {
    enum frame_type type;
    int (*pack)(struct buf *b);
    int (*check)(const struct frame *f, struct err *e);
} messages[] = {
    {FRAME_HELLO, message_pack_hello, message_check_hello},
    {FRAME_SPAWN, pack_spawn, check_spawn},
    {FRAME_WRITE_FILE, pack_write_file, check_write_file},
    {FRAME_ATTACH, pack_attach, check_attach},
    {FRAME_DIAL, pack_dial, check_dial},
    {FRAME_READ_FILE, pack_read_file, check_read_file},
    {FRAME_OPENED, pack_opened, check_opened},
    {FRAME_SCAN, pack_scan, check_scan},
    {FRAME_SCANNED, pack_scanned, check_scanned},
    {FRAME_EXITED, pack_exited, check_exited},
    {FRAME_CONNECT, pack_connect, check_connect},
    {FRAME_ERROR, pack_error, check_error},
    {FRAME_GROUP_ENDED, pack_group_ended, check_group_ended},
    {FRAME_CREDIT, pack_number, check_number},
};

static struct frame frame_of(enum frame_type type, const void *payload, size_t size)
{
    return (struct frame){.type = type, .payload = payload, .size = size};
}

static void every_message_goes_round(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(messages); i++) {
        autobuf struct buf b;

        buf_init(&b, 4096);
        assert_int_equal(messages[i].pack(&b), 0);
        struct frame f = frame_of(messages[i].type, b.data, b.size);
        assert_int_equal(messages[i].check(&f, NULL), 0);
    }
}

/* Cut at every byte, each piece in an allocation of its own for ASan. */
static void every_cut_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(messages); i++) {
        autobuf struct buf b;

        buf_init(&b, 4096);
        messages[i].pack(&b);
        for (size_t n = 0; n < b.size; n++) {
            uint8_t     *part = malloc(n ? n : 1);
            struct frame f = frame_of(messages[i].type, part, n);
            struct err   e = {0};

            memcpy(part, b.data, n);
            if (messages[i].check(&f, &e) == 0)
                fail_msg("%s cut at %zu was taken", frame_type_name(messages[i].type), n);
            assert_int_equal(e.kind, ERR_INVALID);
            free(part);
        }
    }
}

static void trailing_bytes_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(messages); i++) {
        autobuf struct buf b;
        struct err         e = {0};
        char               expected[60];

        buf_init(&b, 4096);
        messages[i].pack(&b);
        buf_add(&b, "", 1);
        struct frame f = frame_of(messages[i].type, b.data, b.size);
        assert_int_equal(messages[i].check(&f, &e), -1);
        snprintf(expected, sizeof expected, "malformed %s frame", frame_type_name(f.type));
        assert_string_equal(e.msg, expected);
    }
}

/* Neither end says or takes a path that leads elsewhere. */
static void only_plain_paths_are_packed_and_unpacked(void **state)
{
    static const char *const crooked[] = {"/",    "/x", ".",   "..",    "x/..",  "../x",
                                          "x//y", "x/", "./x", "x/./y", "x/../y"};
    static const char *const plain[] = {"x", ".x", "..x", "x..", "...", "x/.y/..z", "a b\n/ü"};

    (void)state;
    for (size_t i = 0; i < N(crooked); i++) {
        const char        *path = crooked[i];
        uint8_t            size = (uint8_t)strlen(path);
        autobuf struct buf b;

        buf_init(&b, 4096);
        assert_int_equal(message_pack_read_file(&b, &(struct message_read_file){1, path}), -1);
        assert_int_equal(message_pack_scan(&b, &(struct message_scan){1, 1, path}), -1);
        assert_int_equal(message_pack_row(&b, &(struct message_row){ROW_FILE, 1, 1, path}), -1);
        assert_int_equal(b.size, 0);
        buf_add(&b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17); /* as in a row */
        buf_add(&b, (uint8_t[]){size, 0, 0, 0}, 4);
        buf_add(&b, path, size + 1U);

        struct frame             f = frame_of(FRAME_ROWS, b.data, b.size);
        struct frame             g = frame_of(FRAME_READ_FILE, b.data + 9, b.size - 9);
        struct message_row       row;
        struct message_read_file read_file;
        struct message_scan      scan;
        assert_int_equal(message_next_row(&f, &row, NULL), -1);
        assert_int_equal(message_unpack_read_file(&g, &read_file, NULL), -1);
        assert_int_equal(message_unpack_scan(&g, &scan, NULL), -1);
        b.data[b.size - 1 - size] = 'p'; /* it was the path */
        if (size == 1) {
            assert_int_equal(message_unpack_read_file(&g, &read_file, NULL), 0);
            assert_int_equal(message_unpack_scan(&g, &scan, NULL), 0);
        }
    }
    for (size_t i = 0; i < N(plain); i++) {
        autobuf struct buf b;

        buf_init(&b, 4096);
        assert_int_equal(message_pack_read_file(&b, &(struct message_read_file){1, plain[i]}), 0);
    }
}

static void rows_come_one_after_the_other(void **state)
{
    autobuf struct buf b;
    struct message_row row;

    (void)state;
    buf_init(&b, 4096);
    message_pack_row(&b, &(struct message_row){ROW_LINK, UINT64_MAX, -5, "a/b"});
    size_t first = b.size;
    message_pack_row(&b, &(struct message_row){ROW_OTHER, 0, INT64_MAX, "c"});
    struct frame f = frame_of(FRAME_ROWS, b.data, b.size);
    assert_int_equal(message_next_row(&f, &row, NULL), 1);
    assert_int_equal(row.kind, ROW_LINK);
    assert_true(row.size == UINT64_MAX && row.mtime_ns == -5);
    assert_string_equal(row.path, "a/b");
    assert_int_equal(message_next_row(&f, &row, NULL), 1);
    assert_string_equal(row.path, "c");
    assert_int_equal(message_next_row(&f, &row, NULL), 0);
    for (size_t n = 1; n < b.size; n++) { /* cut at every byte */
        f = frame_of(FRAME_ROWS, b.data, n);
        assert_int_equal(message_next_row(&f, &row, NULL), n < first ? -1 : 1);
        if (n > first)
            assert_int_equal(message_next_row(&f, &row, NULL), -1);
    }
    b.data[0] = ROW_KINDS;
    f = frame_of(FRAME_ROWS, b.data, b.size);
    assert_int_equal(message_next_row(&f, &row, NULL), -1);
}

/* Packing stops at the buffer's maximum, wherever that falls. */
static void a_full_buffer_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(messages); i++) {
        autobuf struct buf b;

        buf_init(&b, 4096);
        messages[i].pack(&b);
        for (size_t max = 0; max < b.size; max++) {
            autobuf struct buf small;

            buf_init(&small, max);
            assert_int_equal(messages[i].pack(&small), -1);
        }
    }
}

static void strings_end_where_they_say(void **state)
{
    static const struct {
        const char *bytes;
        size_t      size;
        bool        good;
    } cases[] = {
        {"\0\0\0\0\1\0\0\0a\0", 10, true},
        {"\0\0\0\0\0\0\0\0\0", 9, true},
        {"\0\0\0\0\1\0\0\0ab", 10, false},
        {"\0\0\0\0\2\0\0\0a\0\0", 11, false},
        {"\0\0\0\0\2\0\0\0a\0", 10, false},
        {"\0\0\0\0\xff\xff\xff\xff"
         "a",
         10, false},
        {"\0\0\0\0\xfe\xff\xff\xff"
         "a",
         10, false},
        {"\0\0\0\0\0\0\0\0", 8, false},
    };

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        struct frame              f = frame_of(FRAME_WRITE_FILE, cases[i].bytes, cases[i].size);
        struct message_write_file m;

        assert_int_equal(message_unpack_write_file(&f, &m, NULL), cases[i].good ? 0 : -1);
    }
}

static const char **list_of(size_t n)
{
    const char **list = calloc(n + 1, sizeof *list);

    for (size_t i = 0; i < n; i++)
        list[i] = "w";
    return list;
}

static void lists_are_bounded(void **state)
{
    static const struct {
        size_t argv, env;
        int    packed, unpacked;
    } cases[] = {
        {1, 0, 0, 0},
        {0, 1, 0, -1}, /* a program without a name */
        {MESSAGE_LIST_MAX, MESSAGE_LIST_MAX, 0, 0},
        {MESSAGE_LIST_MAX + 1, 0, -1, -1},
        {1, MESSAGE_LIST_MAX + 1, -1, -1},
    };

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        const char         **argv = list_of(cases[i].argv), **env = list_of(cases[i].env);
        struct message_spawn m = {1, false, "/", argv, env}, out = {0};
        autobuf struct buf   b;

        buf_init(&b, FRAME_MAX);
        assert_int_equal(message_pack_spawn(&b, &m), cases[i].packed);
        struct frame f = frame_of(FRAME_SPAWN, b.data, b.size);
        assert_int_equal(message_unpack_spawn(&f, &out, NULL), cases[i].unpacked);
        message_spawn_done(&out);
        assert_null(out.argv);
        free(argv);
        free(env);
    }
}

/* A count that promises more than the payload holds costs one bounded allocation and is refused. */
static void counts_are_not_believed(void **state)
{
    static const char *const counts[] = {"\0\x10\0\0", "\1\x10\0\0", "\xff\xff\xff\xff"};

    (void)state;
    for (size_t i = 0; i < N(counts); i++) {
        uint8_t              bytes[14] = {0}; /* group, no stdin, empty cwd, then the count */
        struct message_spawn m;

        memcpy(bytes + 10, counts[i], 4);
        struct frame f = frame_of(FRAME_SPAWN, bytes, sizeof bytes);
        assert_int_equal(message_unpack_spawn(&f, &m, NULL), -1);
    }
}

static void booleans_are_zero_or_one(void **state)
{
    autobuf struct buf    b;
    struct message_exited m;

    (void)state;
    buf_init(&b, 64);
    pack_exited(&b);
    b.data[b.size - 1] = 2;
    struct frame f = frame_of(FRAME_EXITED, b.data, b.size);
    assert_int_equal(message_unpack_exited(&f, &m, NULL), -1);
}

static void endings_are_possible_ones(void **state)
{
    static const struct {
        int32_t code, signal;
        int     taken;
    } cases[] = {{0, 0, 0},    {255, 0, 0},  {-1, 1, 0},  {-1, 64, 0},
                 {256, 0, -1}, {-1, 0, -1},  {-2, 9, -1}, {0, 9, -1},
                 {-1, 65, -1}, {-1, -1, -1}, {3, -1, -1}, {1 << 30, 0, -1}};

    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        struct message_exited m = {.code = cases[i].code, .signal = cases[i].signal}, got;
        autobuf struct buf    b;

        buf_init(&b, 64);
        assert_int_equal(message_pack_exited(&b, &m), 0);
        struct frame f = frame_of(FRAME_EXITED, b.data, b.size);
        assert_int_equal(message_unpack_exited(&f, &got, NULL), cases[i].taken);
    }
}

/* It goes to terminals, logs and answers. */
static void errors_are_one_short_printable_line(void **state)
{
    char               text[1000];
    struct err         e = {0};
    autobuf struct buf b;

    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)(i % 255 + 1);
    text[sizeof text - 1] = '\0';
    buf_init(&b, 1024);
    assert_int_equal(message_pack_error(&b, &(struct message_error){5, text}), 0);
    struct frame f = frame_of(FRAME_ERROR, b.data, b.size);
    message_take_error(&f, &e);
    assert_int_equal(e.sys, 5);
    assert_int_equal(strlen(e.msg), ERR_MSG_MAX - 1);
    for (const char *p = e.msg; *p; p++)
        assert_true(*p >= ' ' && *p <= '~');
}

static void hello_is_ours_and_of_this_version(void **state)
{
    static const struct {
        const char *payload, *sentence;
    } cases[] = {
        {"jrbo\2\0\0\0", "pipe version 2, expected 1"},
        {"Jrbo\1\0\0\0", "hello frame without our magic"},
    };
    autobuf struct buf b;

    (void)state;
    buf_init(&b, 8);
    message_pack_hello(&b);
    assert_memory_equal(b.data, "jrbo\1\0\0\0", 8);
    for (size_t i = 0; i < N(cases); i++) {
        struct frame f = frame_of(FRAME_HELLO, cases[i].payload, 8);
        struct err   e = {0};

        assert_int_equal(message_check_hello(&f, &e), -1);
        assert_string_equal(e.msg, cases[i].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_goes_round),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(trailing_bytes_are_refused),
        cmocka_unit_test(only_plain_paths_are_packed_and_unpacked),
        cmocka_unit_test(rows_come_one_after_the_other),
        cmocka_unit_test(a_full_buffer_is_told),
        cmocka_unit_test(strings_end_where_they_say),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(counts_are_not_believed),
        cmocka_unit_test(booleans_are_zero_or_one),
        cmocka_unit_test(endings_are_possible_ones),
        cmocka_unit_test(errors_are_one_short_printable_line),
        cmocka_unit_test(hello_is_ours_and_of_this_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
