/* hostile-init - stands where jerboa-init belongs and breaks the protocol, one way a mode.
 *
 * The mode is the last line of its own file: a test copies the program and appends a name. A mode
 * behaves up to a stage (greets, takes files, starts "the program") and then does its one deed;
 * afterwards it swallows what comes and ends with its stdin, unless the deed was to end. */
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

static const struct mode *find_mode(void)
{
    char  tail[64] = {0}, *name;
    FILE *self = fopen("/proc/self/exe", "r");

    if (!self)
        return NULL;
    fseek(self, 1 - (long)sizeof tail, SEEK_END);
    size_t n = fread(tail, 1, sizeof tail - 1, self);
    fclose(self);
    if (n != sizeof tail - 1)
        return NULL;
    name = memrchr(tail, '\n', sizeof tail - 1);
    for (size_t i = 0; name && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].name, name + 1) == 0)
            return &modes[i];
    return NULL;
}

int main(void)
{
    const struct mode *mode = find_mode();
    char               swallowed[4096];

    if (!mode)
        return 3;
    if (mode->stage >= GREETED)
        hello();
    if (mode->stage == FILE_OPEN)
        await(FRAME_WRITE_FILE);
    if (mode->stage >= SPAWNED)
        await(FRAME_SPAWN);
    if (mode->stage >= STARTED)
        started();
    mode->deed();
    while (read(0, swallowed, sizeof swallowed) > 0)
        ;
    return 0;
}
