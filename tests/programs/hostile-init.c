/* hostile-init - stands where jerboa-init belongs and breaks the protocol, one way a mode.
 *
 * The mode is the last line of its own file: a test copies the program and appends a name. A mode
 * behaves up to a stage (greets, takes files, starts "the program") and then does its one deed;
 * afterwards it swallows what comes and ends with its stdin, unless the deed was to end.
 *
 * Or the line has three words, STATE TYPE MUTATION, of three tables: it behaves until the sandbox
 * is in that state, sends a frame of that type so changed, and exits. `STATE silent` sends nothing
 * from then on. Called with a word on its command line it prints the tables, for whoever wants to
 * try all of them. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipe/frame.h"

static uint32_t channel; /* the one that the last awaited frame opened */

/* ---- frames ---- */

static void put(const void *bytes, size_t size)
{
    for (const char *p = bytes; size > 0;) {
        ssize_t n = write(1, p, size);
        if (n <= 0)
            _exit(0);
        p += n;
        size -= (size_t)n;
    }
}

static void put_header(uint32_t size, unsigned type, unsigned stream, unsigned zero, uint32_t to)
{
    uint32_t head[3] = {size, type | stream << 8 | zero << 16, to};

    put(head, sizeof head);
}

static void put_frame(unsigned type, unsigned stream, uint32_t to, const void *payload, size_t size)
{
    static char whole[12 + (1 << 20)];
    uint32_t    head[3] = {(uint32_t)size, type | stream << 8, to};

    memcpy(whole, head, 12);
    memcpy(whole + 12, payload, size);
    put(whole, 12 + size);
}

static void put_u32(unsigned type, unsigned stream, uint32_t to, uint32_t value)
{
    put_frame(type, stream, to, &value, 4);
}

static void put_empty(unsigned type, unsigned stream)
{
    put_frame(type, stream, channel, "", 0);
}

static void put_hello(uint32_t magic, uint32_t version)
{
    uint32_t hello[2] = {magic, version};

    put_frame(FRAME_HELLO, 0, 0, hello, sizeof hello);
}

static void put_data(unsigned stream, uint32_t to, size_t size)
{
    static char zeros[1 << 20];

    memset(zeros, 'x', size);
    put_frame(FRAME_DATA, stream, to, zeros, size);
}

static void put_exited(int32_t code, int32_t signal, uint8_t disk_full)
{
    struct __attribute__((packed)) {
        int32_t  code, signal;
        uint64_t cpu_us, rss, stdin_bytes;
        uint8_t  disk_full;
    } m = {code, signal, 1, 1, 0, disk_full};

    put_frame(FRAME_EXITED, 0, channel, &m, sizeof m);
}

static void put_error(uint32_t to)
{
    static const char text[] = "\x1b]0;owned\x07\x1b[2J one\ntwo\r\x7f \x9b 31m \xc2\x9b"
                               "31m end";
    char              payload[256];
    uint32_t          head[2] = {5, sizeof text - 1};

    memcpy(payload, head, 8);
    memcpy(payload + 8, text, sizeof text);
    put_frame(FRAME_ERROR, 0, to, payload, 8 + sizeof text);
}

static void get(void *bytes, size_t size)
{
    for (char *p = bytes; size > 0;) {
        ssize_t n = read(0, p, size);
        if (n <= 0)
            _exit(0);
        p += n;
        size -= (size_t)n;
    }
}

/* Reads on until a frame of this type; files that come meanwhile are acknowledged. */
static void await(unsigned wanted)
{
    static char payload[FRAME_MAX];
    uint32_t    head[3];

    for (;;) {
        get(head, sizeof head);
        get(payload, head[0]);
        channel = head[2];
        if ((head[1] & 0xff) == wanted)
            return;
        if ((head[1] & 0xff) == FRAME_END)
            put_empty(FRAME_DONE, 0);
    }
}

/* ---- deeds ---- */

/* clang-format off: a line each */
static void nothing(void)
{
}
static void quit(void)
{
    _exit(0);
}
static void close_stdout(void)
{
    close(1);
}
static void wrong_magic(void)
{
    put_hello(0x12345678, PIPE_VERSION);
}
static void wrong_version(void)
{
    put_hello(PIPE_MAGIC, 77);
}
static void hello(void)
{
    put_hello(PIPE_MAGIC, PIPE_VERSION);
}
static void short_hello(void)
{
    put_u32(FRAME_HELLO, 0, 0, PIPE_MAGIC);
}
static void started(void)
{
    put_empty(FRAME_STARTED, 0);
}
static void unknown_type(void)
{
    put_header(0, 200, 0, 0, 0);
}
static void type_zero(void)
{
    put_header(0, 0, 0, 0, 0);
}
static void spawn_type(void)
{
    put_header(4, FRAME_SPAWN, 0, 0, 1), put("abcd", 4);
}
static void write_file_type(void)
{
    put_header(4, FRAME_WRITE_FILE, 0, 0, 1), put("abcd", 4);
}
static void plan_type(void)
{
    put_header(4, FRAME_PLAN, 0, 0, 1), put("{}{}", 4);
}
static void group_make_type(void)
{
    put_header(0, FRAME_GROUP_MAKE, 0, 0, 7);
}
static void oversize(void)
{
    put_header(0xffffffff, FRAME_DATA, 1, 0, 1);
}
static void oversize_data(void)
{
    put_header(FRAME_DATA_MAX + 1, FRAME_DATA, 1, 0, 1);
}
static void empty_data(void)
{
    put_header(0, FRAME_DATA, 1, 0, 1);
}
static void bad_stream(void)
{
    put_header(0, FRAME_END, 3, 0, 1);
}
static void reserved(void)
{
    put_header(0, FRAME_END, 1, 1, 1);
}
static void cut_payload(void)
{
    put_header(100, FRAME_DATA, 1, 0, 1), put("short", 5), _exit(0);
}
static void cut_header(void)
{
    put("\1\0\0", 3), _exit(0);
}
static void cut_and_live(void)
{
    put_header(100, FRAME_DATA, 1, 0, 1), put("short", 5), close(1);
}
static void error_on_0(void)
{
    put_error(0);
}
static void error_on_channel(void)
{
    put_error(channel);
}
static void error_unterminated(void)
{
    put_u32(FRAME_ERROR, 0, channel, 5);
}
static void data(void)
{
    put_data(1, channel, 5);
}
static void data_on_stdin(void)
{
    put_data(0, channel, 5);
}
static void data_after_end(void)
{
    put_empty(FRAME_END, 1), put_data(1, channel, 5);
}
static void credit_on_stdout(void)
{
    put_u32(FRAME_CREDIT, 1, channel, 1);
}
static void credit_too_large(void)
{
    put_u32(FRAME_CREDIT, 0, channel, 0xffffffff);
}
static void credit_by_one(void)
{
    put_u32(FRAME_CREDIT, 0, channel, 1);
}
static void exited_malformed(void)
{
    put_frame(FRAME_EXITED, 0, channel, "abc", 3);
}
static void exited_bad_flag(void)
{
    put_exited(0, 0, 2);
}
static void exited_twice(void)
{
    put_exited(0, 0, 0), put_exited(0, 0, 0);
}
static void exited_only(void)
{
    put_exited(0, 0, 0);
}
static void done(void)
{
    put_empty(FRAME_DONE, 0);
}
/* clang-format on */

static void exit_with(int32_t code, int32_t signal)
{
    put_exited(code, signal, 0);
    put_empty(FRAME_END, 1);
    put_empty(FRAME_END, 2);
}

static void exited_code_256(void)
{
    exit_with(256, 0);
}
static void exited_signal_128(void)
{
    exit_with(-1, 128);
}
static void exited_neither(void)
{
    exit_with(-1, 0);
}

static void data_unknown_channel(void)
{
    put_data(1, 4242, 5);
    put_data(1, 0, 5);
    exit_with(0, 0);
}

static void past_window(void)
{
    for (int i = 0; i < 32; i++)
        put_data(1, channel, FRAME_DATA_MAX);
}

static void garbage(void)
{
    uint32_t x = 1;

    for (;;) {
        uint32_t block[1024];
        for (size_t i = 0; i < 1024; i++)
            block[i] = x = x * 1664525 + 1013904223;
        put(block, sizeof block);
    }
}

static void flood(void)
{
    for (;;) {
        put_data(1, 4242, FRAME_DATA_MAX);
        usleep(1000);
    }
}

static void started_forever(void)
{
    for (;;) {
        started();
        usleep(50000);
    }
}

/* ---- the table ---- */

enum stage { AT_ONCE, GREETED, FILE_OPEN, SPAWNED, STARTED };

static const struct mode {
    const char *name;
    enum stage  stage;
    void (*deed)(void);
} modes[] = {
    {"quit", AT_ONCE, quit},
    {"never-hello", AT_ONCE, nothing},
    {"close-stdout", AT_ONCE, close_stdout},
    {"no-hello", AT_ONCE, started},
    {"wrong-magic", AT_ONCE, wrong_magic},
    {"wrong-version", AT_ONCE, wrong_version},
    {"short-hello", AT_ONCE, short_hello},
    {"garbage", AT_ONCE, garbage},
    {"error-at-once", AT_ONCE, error_on_0},
    {"hello-twice", GREETED, hello},
    {"silent-greeted", GREETED, nothing},
    {"flood", GREETED, flood},
    {"quit-greeted", GREETED, quit},
    {"close-stdout-greeted", GREETED, close_stdout},
    {"unknown-type", GREETED, unknown_type},
    {"type-zero", GREETED, type_zero},
    {"spawn-type", GREETED, spawn_type},
    {"write-file-type", GREETED, write_file_type},
    {"plan-type", GREETED, plan_type},
    {"group-make-type", GREETED, group_make_type},
    {"oversize", GREETED, oversize},
    {"oversize-data", GREETED, oversize_data},
    {"empty-data", GREETED, empty_data},
    {"bad-stream", GREETED, bad_stream},
    {"reserved", GREETED, reserved},
    {"cut-payload", GREETED, cut_payload},
    {"cut-header", GREETED, cut_header},
    {"cut-and-live", GREETED, cut_and_live},
    {"error-on-0", GREETED, error_on_0},
    {"file-error", FILE_OPEN, error_on_channel},
    {"file-error-unterminated", FILE_OPEN, error_unterminated},
    {"file-data", FILE_OPEN, data},
    {"file-exited", FILE_OPEN, exited_only},
    {"file-started", FILE_OPEN, started},
    {"file-credit", FILE_OPEN, credit_too_large},
    {"silent-spawned", SPAWNED, nothing},
    {"process-done", SPAWNED, done},
    {"process-error", SPAWNED, error_on_channel},
    {"process-error-unterminated", SPAWNED, error_unterminated},
    {"silent-started", STARTED, nothing},
    {"started-twice", STARTED, started},
    {"started-forever", STARTED, started_forever},
    {"data-unknown-channel", STARTED, data_unknown_channel},
    {"data-on-stdin", STARTED, data_on_stdin},
    {"data-after-end", STARTED, data_after_end},
    {"past-window", STARTED, past_window},
    {"credit-on-stdout", STARTED, credit_on_stdout},
    {"credit-too-large", STARTED, credit_too_large},
    {"credit-by-one", STARTED, credit_by_one},
    {"exited-malformed", STARTED, exited_malformed},
    {"exited-bad-flag", STARTED, exited_bad_flag},
    {"exited-twice", STARTED, exited_twice},
    {"exited-without-end", STARTED, exited_only},
    {"exited-code-256", STARTED, exited_code_256},
    {"exited-signal-128", STARTED, exited_signal_128},
    {"exited-neither", STARTED, exited_neither},
    {"error-started", STARTED, error_on_channel},
};

/* The last line of our own file. */
static const char *own_line(void)
{
    static char tail[80];
    char       *line;
    FILE       *self = fopen("/proc/self/exe", "r");

    if (!self)
        return "";
    fseek(self, 1 - (long)sizeof tail, SEEK_END);
    size_t n = fread(tail, 1, sizeof tail - 1, self);
    fclose(self);
    line = n == sizeof tail - 1 ? memrchr(tail, '\n', n) : NULL;
    return line ? line + 1 : "";
}

static const struct mode *find_mode(const char *name)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].name, name) == 0)
            return &modes[i];
    return NULL;
}

/* ---- every state, type and mutation ---- */

/* What a well-behaved init would have said by now. */
static struct {
    uint32_t file, process; /* their channels, 0: none */
    unsigned scans;
    bool     runs_to_its_end;
} story;

static void put_rows(uint32_t to)
{
    struct __attribute__((packed)) {
        uint8_t  kind;
        uint64_t size;
        int64_t  changed_ns;
        uint32_t length;
        char     path[9];
    } row = {0, 5, 1, 7, "files/x"};

    put_frame(FRAME_ROWS, 0, to, &row, sizeof row - 1);
}

static void put_scanned(uint32_t to)
{
    put_frame(FRAME_SCANNED, 0, to, "", 1);
}

/* One frame of the server is answered as it should be. */
static void behave(unsigned type, uint32_t from)
{
    channel = from;
    if (type == FRAME_WRITE_FILE)
        story.file = from;
    if (type == FRAME_END && from == story.file)
        put_empty(FRAME_DONE, 0);
    if (type == FRAME_SCAN) {
        if (++story.scans > 1) /* the run has made a file */
            put_rows(from);
        put_scanned(from);
    }
    if (type != FRAME_SPAWN)
        return;
    story.process = from;
    started();
    if (story.runs_to_its_end)
        exit_with(0, 0);
}

/* Until a frame of this type, which is not answered; 0: until the pipe ends. */
static void behave_until(unsigned wanted)
{
    static char payload[FRAME_MAX];
    uint32_t    head[3];

    for (;;) {
        ssize_t n = read(0, head, 1);
        if (n <= 0 && wanted == 0)
            return;
        if (n <= 0)
            _exit(0);
        get((char *)head + 1, sizeof head - 1);
        get(payload, head[0]);
        channel = head[2];
        if ((head[1] & 0xff) == wanted && (wanted != FRAME_END || channel == story.file))
            return;
        behave(head[1] & 0xff, head[2]);
    }
}

static void begin_run(void)
{
    behave_until(FRAME_SPAWN);
    behave(FRAME_SPAWN, channel);
}

static void enter_idle(void)
{
    hello();
}
static void enter_scan(void)
{
    hello(), behave_until(FRAME_SCAN);
}
static void enter_upload(void)
{
    hello(), behave_until(FRAME_WRITE_FILE);
}
static void enter_uploaded(void)
{
    hello(), behave_until(FRAME_END);
}
static void enter_spawned(void)
{
    hello(), behave_until(FRAME_SPAWN);
}
static void enter_started(void)
{
    hello(), begin_run();
}
static void enter_exited(void)
{
    hello(), begin_run(), put_exited(0, 0, 0);
}
static void enter_read(void)
{
    story.runs_to_its_end = true, hello(), behave_until(FRAME_READ_FILE);
}
static void enter_dial(void)
{
    hello(), behave_until(FRAME_DIAL);
}
static void enter_dialled(void)
{
    hello(), behave_until(FRAME_DIAL), started();
}
static void enter_released(void) /* the first byte of the stdin is the gate's */
{
    hello(), begin_run(), behave_until(FRAME_DATA);
    while (channel != story.process)
        behave_until(FRAME_DATA);
}
static void enter_stop(void)
{
    hello(), behave_until(0);
}

static const struct {
    const char *name;
    void (*enter)(void);
} states[] = {
    {"before-hello", nothing},    {"idle", enter_idle},         {"scan", enter_scan},
    {"upload", enter_upload},     {"uploaded", enter_uploaded}, {"spawned", enter_spawned},
    {"started", enter_started},   {"exited", enter_exited},     {"read", enter_read},
    {"dial", enter_dial},         {"dialled", enter_dialled},   {"command", enter_started},
    {"stop", enter_stop},         {"gate", enter_spawned},      {"held", enter_started},
    {"released", enter_released},
};

#define BYTES(text) text, sizeof text - 1

/* A payload that fits, as far as a type has one. */
static const struct kind {
    const char *name;
    unsigned    type, stream;
    const char *payload;
    size_t      size;
} kinds[] = {
    {"hello", FRAME_HELLO, 0, BYTES("jrbo\1\0\0\0")},
    {"data", FRAME_DATA, 1, BYTES("hello")},
    {"end", FRAME_END, 1, BYTES("")},
    {"credit", FRAME_CREDIT, 0, BYTES("\1\0\0\0")},
    {"started", FRAME_STARTED, 0, BYTES("")},
    {"exited", FRAME_EXITED, 0,
     BYTES("\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")},
    {"done", FRAME_DONE, 0, BYTES("")},
    {"error", FRAME_ERROR, 0, BYTES("\5\0\0\0\15\0\0\0one\ntwo\r\x1b[2J.\0")},
    {"opened", FRAME_OPENED, 0, BYTES("\5\0\0\0\0\0\0\0")},
    {"rows", FRAME_ROWS, 0, BYTES("\0\5\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\7\0\0\0files/x\0")},
    {"scanned", FRAME_SCANNED, 0, BYTES("\0")},
    {"connect", FRAME_CONNECT, 0, BYTES("\0\0\0\0\0\0\0\0\0\0\xff\xff\12\1\2\3\x50\0")},
    {"reset", FRAME_RESET, 0, BYTES("")},
    {"lookup", FRAME_LOOKUP, 0, BYTES("\0\7\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1")},
    /* what no init sends */
    {"spawn", FRAME_SPAWN, 0, BYTES("\0\0\0\0")},
    {"signal", FRAME_SIGNAL, 0, BYTES("\11\0\0\0")},
    {"write-file", FRAME_WRITE_FILE, 0, BYTES("\0\0\0\0\1\0\0\0a\0")},
    {"dial", FRAME_DIAL, 0, BYTES("\0\1")},
    {"read-file", FRAME_READ_FILE, 0, BYTES("\5\0\0\0\0\0\0\0\1\0\0\0a\0")},
    {"scan", FRAME_SCAN, 0, BYTES("\5\0\0\0\5\0\0\0\1\0\0\0a\0")},
    {"found", FRAME_FOUND, 0, BYTES("\0\7\1\0\0\1\0\0\0\0\0\0")},
    {"plan", FRAME_PLAN, 0, BYTES("{}")},
    {"group-make", FRAME_GROUP_MAKE, 0, BYTES("")},
    {"group-run", FRAME_GROUP_RUN, 0, BYTES("")},
    {"group-drop", FRAME_GROUP_DROP, 0, BYTES("")},
    {"group-end", FRAME_GROUP_END, 0, BYTES("")},
    {"group-ended", FRAME_GROUP_ENDED, 0,
     BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")},
    {"walls", FRAME_WALLS, 0, BYTES("[]")},
    {"attach", FRAME_ATTACH, 0, BYTES("\1\0\0\0a\0\1\0\0\0b\0")},
    {"attached", FRAME_ATTACHED, 0, BYTES("")},
    {"type-zero", 0, 0, BYTES("")},
    {"type-119", 119, 0, BYTES("abcd")},
    {"type-255", 255, 0, BYTES("")},
};

enum { SENT_MAX = 128, MANY = 2000 };

/* A frame as bytes, before it is changed. */
static struct sent {
    uint8_t bytes[SENT_MAX];
    size_t  size;
} sent;

static void set_u32(size_t at, uint32_t value)
{
    memcpy(sent.bytes + at, &value, 4);
}

static uint32_t get_u32(size_t at)
{
    uint32_t value;

    memcpy(&value, sent.bytes + at, 4);
    return value;
}

static void make(const struct kind *k)
{
    bool of_init = k->type == FRAME_CONNECT || k->type == FRAME_LOOKUP;

    memset(&sent, 0, sizeof sent);
    set_u32(0, (uint32_t)k->size);
    set_u32(4, k->type | k->stream << 8);
    set_u32(8, of_init ? CHANNEL_OF_INIT | 1 : k->type == FRAME_HELLO ? 0 : channel);
    memcpy(sent.bytes + 12, k->payload, k->size);
    sent.size = 12 + k->size;
}

static void put_sent(void)
{
    put(sent.bytes, sent.size);
}

/* clang-format off: a line each */
static void twice(void)
{
    put_sent(), put_sent();
}
static void many(void)
{
    for (int i = 0; i < MANY; i++)
        put_sent();
}
static void shorter(void)
{
    set_u32(0, get_u32(0) - 1), sent.size -= sent.size > 12, put_sent();
}
static void longer(void)
{
    set_u32(0, get_u32(0) + 1), sent.size++, put_sent();
}
static void without_payload(void)
{
    set_u32(0, 0), sent.size = 12, put_sent();
}
static void claims_all(void)
{
    set_u32(0, UINT32_MAX), put_sent();
}
static void claims_too_much(void)
{
    set_u32(0, FRAME_MAX + 1), put_sent();
}
static void claims_more(void)
{
    set_u32(0, get_u32(0) + 9), put_sent();
}
static void other_stream(void)
{
    sent.bytes[5] ^= 1, put_sent();
}
static void no_stream(void)
{
    sent.bytes[5] = 7, put_sent();
}
static void reserved_bits(void)
{
    sent.bytes[6] = 1, put_sent();
}
static void on_channel_0(void)
{
    set_u32(8, 0), put_sent();
}
static void on_next_channel(void)
{
    set_u32(8, get_u32(8) + 1), put_sent();
}
static void on_channel_before(void)
{
    set_u32(8, get_u32(8) - 1), put_sent();
}
static void on_unknown_channel(void)
{
    set_u32(8, 4242), put_sent();
}
static void on_channel_of_init(void)
{
    set_u32(8, get_u32(8) ^ CHANNEL_OF_INIT), put_sent();
}
static void on_all_channels(void)
{
    for (uint32_t i = 0; i < 64; i++)
        set_u32(8, i), put_sent();
}
static void all_ones(void)
{
    memset(sent.bytes + 12, 0xff, sent.size - 12), put_sent();
}
static void noise(void)
{
    for (size_t i = 12; i < sent.size; i++)
        sent.bytes[i] = (uint8_t)(sent.bytes[i] * 7 + i * 31);
    put_sent();
}
static void cut(void)
{
    sent.size = sent.size * 2 / 3, put_sent();
}
static void cut_header_only(void)
{
    sent.size = 5, put_sent();
}
static void trickle(void)
{
    for (size_t i = 0; i < sent.size; i++)
        put(sent.bytes + i, 1);
}
static void then_closes(void)
{
    char swallowed[4096];

    put_sent(), close(1);
    while (read(0, swallowed, sizeof swallowed) > 0)
        ;
}
static void before_garbage(void)
{
    put_sent(), memset(sent.bytes, 0xa5, sizeof sent.bytes), sent.size = SENT_MAX, put_sent();
}
/* clang-format on */

static const struct {
    const char *name;
    void (*put)(void);
} mutations[] = {
    {"as-it-is", put_sent},
    {"twice", twice},
    {"many", many},
    {"shorter", shorter},
    {"longer", longer},
    {"without-payload", without_payload},
    {"claims-all", claims_all},
    {"claims-too-much", claims_too_much},
    {"claims-more", claims_more},
    {"other-stream", other_stream},
    {"no-stream", no_stream},
    {"reserved-bits", reserved_bits},
    {"on-channel-0", on_channel_0},
    {"on-next-channel", on_next_channel},
    {"on-channel-before", on_channel_before},
    {"on-unknown-channel", on_unknown_channel},
    {"on-channel-of-init", on_channel_of_init},
    {"on-all-channels", on_all_channels},
    {"all-ones", all_ones},
    {"noise", noise},
    {"cut", cut},
    {"cut-header", cut_header_only},
    {"trickle", trickle},
    {"then-closes", then_closes},
    {"before-garbage", before_garbage},
};

#define COUNT(table) (sizeof table / sizeof table[0])
#define PRINT_NAMES(table)                                                                         \
    for (size_t i = 0; i < COUNT(table); i++)                                                      \
    printf("%s%s", table[i].name, i + 1 < COUNT(table) ? " " : "\n")

static int print_tables(void)
{
    PRINT_NAMES(states);
    PRINT_NAMES(kinds);
    PRINT_NAMES(mutations);
    return 0;
}

static bool enter(const char *name)
{
    for (size_t i = 0; i < COUNT(states); i++)
        if (strcmp(states[i].name, name) == 0) {
            states[i].enter();
            return true;
        }
    return false;
}

static bool send_changed(const char *kind, const char *mutation)
{
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t m = 0; m < COUNT(mutations); m++)
            if (strcmp(kinds[k].name, kind) == 0 && strcmp(mutations[m].name, mutation) == 0) {
                make(&kinds[k]);
                mutations[m].put();
                return true;
            }
    return false;
}

static void swallow(void)
{
    char bytes[4096];

    while (read(0, bytes, sizeof bytes) > 0)
        ;
}

/* 3: no such words, which the test then sees as a sandbox that never began. */
static int play_case(const char *line)
{
    char state[32] = "", kind[32] = "", mutation[32] = "";
    int  n = sscanf(line, "%31s %31s %31s", state, kind, mutation);

    if (!enter(state))
        return 3;
    if (n == 2 && strcmp(kind, "silent") == 0)
        swallow();
    else if (!send_changed(kind, mutation))
        return 3;
    return 0;
}

int main(int argc, char **argv)
{
    const char        *line = own_line();
    const struct mode *mode = find_mode(line);

    (void)argv;
    if (argc > 1 && getpid() != 1)
        return print_tables();
    if (!mode)
        return play_case(line);
    if (mode->stage >= GREETED)
        hello();
    if (mode->stage == FILE_OPEN)
        await(FRAME_WRITE_FILE);
    if (mode->stage >= SPAWNED)
        await(FRAME_SPAWN);
    if (mode->stage >= STARTED)
        started();
    mode->deed();
    swallow();
    return 0;
}
