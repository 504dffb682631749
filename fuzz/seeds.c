/* seeds - writes the seeds that are made of frames: BUILD/fuzz/seeds fuzz/corpus
 *
 * Each is a short story in words, a word a frame, with its channel in front, `^` for one of init's.
 * Run it again when the
 * grammar changes: old seeds would die at their first frame. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "pipe/message.h"

#define GOOD_RUN                                                                                   \
    "hello 1:credit-10 1:done 2:credit-64k 2:done 3:started 3:out 3:err 3:credit-64k 3:end-out "   \
    "3:end-err 3:exited"

#define LOOKS "3:opened 3:out 3:end-out 4:rows 4:scanned"
#define VISIT "^1:connect ^1:out ^1:out ^1:credit-in-12 ^1:end-out"
#define NAME "^1:query ^2:connect-name ^2:out ^2:end-out ^3:query ^4:connect-name ^4:out"

static const struct seed {
    const char *path, *story; /* +N: a byte of that value; cut: the last frame is cut short */
} seeds[] = {
    {"frame/hello", "hello"},
    {"frame/spawn", "1:cat"},
    {"frame/write-file", "1:file"},
    {"frame/data-end-credit", "1:data 1:end 1:out 1:credit-out"},
    {"frame/signal", "1:kill"},
    {"frame/exited", "1:exited"},
    {"frame/error", "1:error"},
    {"frame/group-ended", "1:group-ended"},
    {"frame/walls", "0:walls"},
    {"frame/group-make-end", "1:group-make 1:group-end"},
    {"frame/plan", "plan"},
    {"frame/attach", "1:attach 1:attached"},
    {"frame/started-done", "1:started 1:done"},
    {"frame/connect", "^1:connect ^1:out ^1:data ^1:end-out ^1:reset"},
    {"frame/lookup", "^2:lookup ^2:found"},
    {"frame/inside", "1:dial 2:read 3:scan"},
    {"frame/looked-at", "2:opened 3:rows 3:scanned"},
    {"frame/cut-short", "1:cat cut"},

    {"init/hello-twice", "hello hello"},
    {"init/no-hello", "1:cat"},
    {"init/cat", "hello 1:cat 1:data 1:data 1:end"},
    {"init/cat-past-its-window", "hello 1:wait 1:bulk 1:bulk 1:bulk 1:bulk"},
    {"init/yes", "hello 1:yes 9:bulk 9:bulk 1:credit-out 1:credit-out"},
    {"init/exits-at-once", "hello 1:exit 1:data 1:end 1:kill 1:cat"},
    {"init/cannot-start", "hello 1:missing 1:data 1:end 1:cat"},
    {"init/killed", "hello 1:wait 1:kill 1:data 1:kill"},
    {"init/file", "hello 2:file 2:data 2:data 2:end 2:file 2:end"},
    {"init/file-cannot-be-made", "hello 2:file-n 2:data 2:end"},
    {"init/file-cannot-be-written", "hello 2:file-w 2:data 2:end"},
    {"init/file-cannot-be-named", "hello 2:file-p 2:data 2:end"},
    {"init/many", "hello 1:cat 2:yes 3:file 4:exit 5:wait 3:data 1:data 2:credit-out 3:end 1:end "
                  "5:kill 3:file"},
    {"init/same-number-twice", "hello 1:cat 1:cat"},
    {"init/unknown-channel", "hello 9:data 9:end 9:kill"},
    {"init/data-past-the-end", "hello 1:wait 1:bulk 1:end 1:data"},
    {"init/plan-on-a-channel", "hello 1:cat 1:plan"},
    {"init/cut-short", "hello 1:cat cut"},
    {"init/connection",
     "hello 1:net-echo 9:bulk ^1:data ^1:data 9:bulk ^1:credit-out 9:bulk ^1:end 9:bulk"},
    {"init/connection-reset", "hello 1:net-echo 9:bulk ^1:data ^1:reset ^1:data 9:bulk ^2:reset"},
    {"init/connection-half-closed", "hello 1:net-half 9:bulk ^1:data 9:bulk ^1:end 9:bulk ^2:end"},
    {"init/connection-hangs-up",
     "hello 1:net-hang-up 9:bulk ^1:data 9:bulk ^1:data ^2:data ^2:end"},
    {"init/connection-floods", "hello 1:net-flood 9:bulk 9:bulk 9:bulk 9:bulk 9:bulk 9:bulk 9:bulk "
                               "9:bulk ^1:credit-out 9:bulk ^1:end 1:kill 9:bulk"},
    {"init/connection-past-its-credit", "hello 1:net-echo 9:bulk ^1:credit-out"},
    {"init/connection-data-past-the-end", "hello 1:net-half 9:bulk ^1:end ^1:data"},
    {"init/lookups", "hello 1:dns 9:bulk ^1:found ^3:found 9:bulk ^2:found ^2:found ^99:found"},
    {"init/network-in-a-crowd",
     "hello 1:net-echo 2:net-half 3:net-flood 4:dns 5:net-hang-up 6:cat 7:net-echo 8:net-echo "
     "9:bulk ^1:data ^2:data ^3:credit-out ^4:found ^5:data ^6:data ^7:data ^8:end ^9:reset "
     "9:bulk ^1:end 1:kill 9:bulk ^3:reset ^2:end 9:bulk"},
    {"init/dial",
     "hello 1:serve 2:dial 9:bulk 2:data 9:bulk 2:credit-out 2:data 9:bulk 2:end 9:bulk"},
    {"init/dial-ipv6", "hello 1:serve-ipv6 2:dial 9:bulk 2:data 9:bulk 1:kill 2:data 9:bulk"},
    {"init/dial-refused",
     "hello 2:dial 9:bulk 1:serve 3:dial-1 9:bulk 2:data 3:data 2:dial 2:reset"},
    {"init/dial-reset", "hello 1:serve 2:dial 9:bulk 2:data 2:reset 9:bulk 2:data 2:dial 9:bulk"},
    {"init/dial-too-early", "hello 1:serve 2:dial 2:data"},
    {"init/dial-twice", "hello 1:serve 2:dial 9:bulk 2:dial"},
    {"init/read", "hello 2:read 9:bulk 9:bulk 2:read-deep 3:read-some 9:bulk 2:credit-out 9:bulk"},
    {"init/read-refused",
     "hello 2:read-link 3:read-fifo 4:read-missing 9:bulk 2:data 3:read-dir 9:bulk"},
    {"init/read-reset", "hello 2:read 2:reset 2:credit-out 2:read 2:data"},
    {"init/read-path", "hello 2:read-up"},
    {"init/scan", "hello 2:scan 9:bulk 9:bulk 3:scan-d 2:scan-few 9:bulk 9:bulk"},
    {"init/scan-refused",
     "hello 2:scan-file 3:scan-link 9:bulk 2:scan 2:reset 3:scan 3:credit-out"},
    {"init/inside-in-a-crowd",
     "hello 1:serve 2:serve-ipv6 3:dial 4:dial 5:read 6:scan 7:cat 9:bulk 3:data "
     "4:data 7:data 5:reset 9:bulk 3:end 4:reset 6:scan-d 7:end 9:bulk"},
    {"init/spawn-on-a-channel-of-init", "hello ^1:cat"},

    {"init-alone/run", "hello 1:group-make 1:cat 1:group-run 1:data 1:end 9:bulk 1:group-end"},
    {"init-alone/ended-while-it-runs", "hello 1:group-make 1:wait 1:group-end 1:data 1:kill"},
    {"init-alone/ended-twice", "hello 1:yes 1:group-end 1:group-end 9:bulk 1:group-drop"},
    {"init-alone/dropped", "hello 1:group-make 1:group-drop 1:wait 1:group-drop"},
    {"init-alone/never-started", "hello 7:group-end 2:file 2:group-end 2:data 2:end"},
    {"init-alone/beside-each-other", "hello 1:wait 2:cat 3:exit 4:yes 2:group-end 9:bulk "
                                     "3:group-end 1:group-end 4:kill 4:group-end"},
    {"init-alone/leader-killed", "hello 1:kills 2:wait 3:serve 9:bulk 1:group-end 2:group-end"},
    {"init-alone/killed-then-ended", "hello 1:wait 1:kill 1:group-end 9:bulk"},
    {"init-alone/on-a-connection", "hello 1:serve 2:dial 9:bulk 2:group-end 2:data 9:bulk"},

    {"server/good-run", "+0 " GOOD_RUN},
    {"server/good-run-at-once", "+16 " GOOD_RUN},
    {"server/cancelled", "+1 " GOOD_RUN},
    {"server/stopped", "+2 " GOOD_RUN},
    {"server/jail-dies", "+4 " GOOD_RUN},
    {"server/reader-holds-back", "+8 " GOOD_RUN},
    {"server/no-hello", "+0 1:done"},
    {"server/hello-twice", "+0 hello hello"},
    {"server/file-refused", "+0 hello 1:error"},
    {"server/spawn-refused", "+0 hello 1:done 2:credit-64k 2:done 3:error"},
    {"server/sandbox-error", "+0 hello error"},
    {"server/exit-twice", "+0 hello 1:done 2:credit-64k 2:done 3:started 3:exited 3:exited"},
    {"server/exit-by-no-signal",
     "+0 hello 1:done 2:credit-64k 2:done 3:started 3:end-out 3:end-err "
     "3:exited-wildly"},
    {"server/output-past-its-end", "+0 hello 1:done 2:credit-64k 2:done 3:started 3:end-out 3:out"},
    {"server/credit-too-much", "+0 hello 1:credit-64k 1:credit-64k"},
    {"server/done-then-broken", "+16 hello 1:done 1:plan"},
    {"server/done-then-hello", "+16 hello 1:done hello"},
    {"server/started-twice", "+0 hello 1:done 2:credit-64k 2:done 3:started 3:started 3:out"},
    {"server/nobody-reads-stdin",
     "+0 hello 1:done 2:credit-64k 2:done 3:started 3:end 3:end-out 3:end-err 3:exited"},
    {"egress/echo", "+0 " VISIT},
    {"egress/echo-half-closed", "+0 ^1:connect ^1:end-out ^1:out"},
    {"egress/hangs-up", "+8 " VISIT},
    {"egress/silent", "+16 " VISIT " ^1:bulk-out ^1:bulk-out ^1:reset"},
    {"egress/refused-outside", "+4 " VISIT},
    {"egress/refused-by-policy", "+32 " VISIT},
    {"egress/changes-its-mind", "+64 " VISIT " ^2:connect ^1:out ^2:out"},
    {"egress/private", "+0 ^1:connect-private ^1:out ^2:connect-registry ^2:out ^2:end-out"},
    {"egress/registry", "+32 ^1:connect-registry ^1:out ^1:end-out"},
    {"egress/name", "+0 " NAME},
    {"egress/name-private", "+2 " NAME},
    {"egress/name-garbled", "+128 " NAME},
    {"egress/name-not-allowed", "+32 " NAME},
    {"egress/name-at-port-0", "+0 ^1:query ^2:connect-name-0 ^2:out"},
    {"egress/made-up-by-itself", "+0 ^1:connect-name ^1:out"},
    {"egress/forwarded", "+0 ^1:query-txt ^2:lookup ^3:query-garbled"},
    {"egress/forwarded-by-name-servers-that-refuse", "+4 ^1:query-txt ^2:query-edns"},
    {"egress/edns", "+0 ^1:query-edns ^2:query-edns"},
    {"egress/dns-stream", "+0 ^1:connect-dns ^1:stream-a ^1:stream-txt ^1:end-out"},
    {"egress/dns-stream-at-once", "+0 ^1:connect-dns ^1:stream-both ^1:credit-in-12 ^1:reset"},
    {"egress/dns-stream-not-allowed", "+32 ^1:connect-dns ^1:stream-both ^1:end-out"},
    {"egress/dns-stream-garbled", "+128 ^1:connect-dns ^1:stream-both ^1:end-out"},
    {"egress/dns-stream-of-no-queries", "+0 ^1:connect-dns ^1:bulk-out ^2:connect-dns ^2:end-out"},
    {"egress/dns-stream-changes-its-mind", "+64 ^1:connect-dns ^1:stream-txt ^1:stream-a ^1:out"},
    {"egress/message-edns", "+1 dns-edns"},
    {"egress/number-twice", "+0 ^1:connect ^1:connect"},
    {"egress/number-not-of-init", "+0 1:connect ^2:query ^1:connect"},
    {"egress/past-the-end", "+0 ^1:connect ^1:end-out ^1:end-out"},
    {"egress/credit-too-much", "+0 ^1:connect ^1:credit-64k"},
    {"egress/not-its-frames", "+0 ^1:connect ^1:started"},
    {"egress/message-query", "+1 dns-query"},
    {"egress/message-txt", "+1 dns-txt"},
    {"egress/message-answer", "+1 dns-answer"},

    {"server/inside", "+32 hello " LOOKS " 2:started 2:end-out"},
    {"server/inside-at-once", "+48 hello " LOOKS " 2:started 2:out 2:end-out"},
    {"server/inside-refused", "+32 hello 2:error 3:error 4:error"},
    {"server/inside-cancelled", "+33 hello 3:opened 4:rows"},
    {"server/inside-stopped", "+34 hello 3:opened 3:out 4:rows 2:started"},
    {"server/inside-cut-by-stop", "+34 hello " LOOKS " 2:started"},
    {"server/file-more-than-asked", "+32 hello 3:opened 3:bulk-out 3:bulk-out 3:bulk-out"},
    {"server/file-not-opened", "+32 hello 3:out"},
    {"server/file-opened-twice", "+32 hello 3:opened 3:opened"},
    {"server/rows-up", "+32 hello 4:rows-up"},
    {"server/rows-too-many", "+32 hello 4:rows 4:rows 4:rows"},
    {"server/rows-of-a-kind-that-is-not", "+32 hello 4:rows-strange"},
    {"server/visit", "+96 hello 6:started 6:out 6:credit-in-12 6:end-out"},
    {"server/visit-refused", "+96 hello 6:error 2:error"},
    {"server/visit-reset", "+96 hello 6:started 6:out 6:reset"},
    {"server/visit-before-it-started", "+96 hello 6:out"},
    {"server/visit-past-the-end", "+96 hello 6:started 6:end-out 6:out"},
    {"server/visit-credit-too-much", "+96 hello 6:started 6:credit-64k 6:credit-64k"},
    {"server/visit-stopped", "+98 hello 6:started 6:out"},
    {"server/cut-short", "+0 hello 1:done 2:credit-64k 2:done 3:started 3:out cut"},
};

/* ---- payloads ---- */

static int spawn(struct buf *b, const char *program)
{
    const char          *argv[] = {program, "-u", NULL}, *env[] = {"A=1", NULL};
    struct message_spawn m = {1, true, "/workspace", argv, env};

    return message_pack_spawn(b, &m);
}

static int file(struct buf *b, const char *path)
{
    return message_pack_write_file(b, &(struct message_write_file){0644, path});
}

static int layer(struct buf *b, const char *path)
{
    return message_pack_attach(b, &(struct message_attach){path, "/workspace/node_modules"});
}

static int dial(struct buf *b, const char *text)
{
    return message_pack_dial(b, &(struct message_dial){(uint16_t)atoi(text)});
}

/* `text`: how much, then the path. */
static int read_file(struct buf *b, const char *text)
{
    const char *path = strchr(text, ' ') + 1;

    return message_pack_read_file(b, &(struct message_read_file){(uint64_t)atoi(text), path});
}

static int scan(struct buf *b, const char *text)
{
    const char *path = strchr(text, ' ') + 1;

    return message_pack_scan(b, &(struct message_scan){(uint32_t)atoi(text), 3, path});
}

static int opened(struct buf *b, const char *text)
{
    return message_pack_opened(b, &(struct message_opened){(uint64_t)atoi(text)});
}

static int rows(struct buf *b, const char *text)
{
    if (message_pack_row(b, &(struct message_row){ROW_DIR, 4096, 1, "a"}) < 0)
        return -1;
    return message_pack_row(b, &(struct message_row){ROW_FILE, 12, 1, text});
}

static int rows_strange(struct buf *b, const char *text)
{
    return message_pack_row(b, &(struct message_row){ROW_KINDS, 12, 1, text});
}

static int scanned(struct buf *b, const char *text)
{
    return message_pack_scanned(b, &(struct message_scanned){*text == '1'});
}

/* A path that no one packs. */
static int read_up(struct buf *b, const char *text)
{
    if (read_file(b, text) < 0)
        return -1;
    memcpy(b->data + b->size - 3, "..", 2);
    return 0;
}

static int rows_up(struct buf *b, const char *text)
{
    if (rows(b, text) < 0)
        return -1;
    memcpy(b->data + b->size - 3, "..", 2);
    return 0;
}

static int number(struct buf *b, const char *text)
{
    return message_pack_u32(b, (uint32_t)atoi(text));
}

static int bytes(struct buf *b, const char *text)
{
    return buf_printf(b, "%s", text);
}

static int bulk(struct buf *b, const char *text)
{
    return buf_printf(b, "%*s", 900, text);
}

static int exited(struct buf *b, const char *text)
{
    return message_pack_exited(b, &(struct message_exited){atoi(text), 0, 1000, 4096, 0, false});
}

static int exited_wildly(struct buf *b, const char *text)
{
    (void)text;
    return message_pack_exited(b, &(struct message_exited){-1, INT32_MAX, 0, 0, 0, false});
}

/* `text`: the port, then the last four bytes of the address. */
static int connect_to(struct buf *b, const char *text)
{
    struct message_connect m = {.address = {[10] = 0xff, 0xff}};

    if (sscanf(text, "%hu %hhu.%hhu.%hhu.%hhu", &m.port, &m.address[12], &m.address[13],
               &m.address[14], &m.address[15]) != 5)
        return -1;
    return message_pack_connect(b, &m);
}

enum { QUERY = 24 };

/* A question for a.test, QUERY bytes; `text` has the type's letter. */
static int query(struct buf *b, const char *text)
{
    static const uint8_t head[] = {0, 7, 1, 0,   0, 1,   0,   0,   0,  0,
                                   0, 0, 1, 'a', 4, 't', 'e', 's', 't'};
    const uint8_t        tail[] = {0, 0, (uint8_t)*text, 0, 1};

    return buf_add(b, head, sizeof head) < 0 ? -1 : buf_add(b, tail, sizeof tail);
}

/* The same, with a size that its asker takes, 0x04d0. */
static int query_edns(struct buf *b, const char *text)
{
    static const uint8_t record[] = {0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0};

    if (query(b, text) < 0 || buf_add(b, record, sizeof record) < 0)
        return -1;
    b->data[b->size - sizeof record - QUERY + 11] = 1; /* the number of such records */
    return 0;
}

/* Queries as they come by TCP, one for each letter. */
static int stream(struct buf *b, const char *text)
{
    static const uint8_t prefix[] = {0, QUERY};

    for (; *text; text++)
        if (buf_add(b, prefix, sizeof prefix) < 0 || query(b, text) < 0)
            return -1;
    return 0;
}

static int answer(struct buf *b, const char *text)
{
    static const uint8_t record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 93, 184, 216, 34};

    if (query(b, text) < 0 || buf_add(b, record, sizeof record) < 0)
        return -1;
    b->data[2] |= 0x80;
    b->data[7] = 1;
    return 0;
}

static int error(struct buf *b, const char *text)
{
    return message_pack_error(b, &(struct message_error){2, text});
}

static int group_ended(struct buf *b, const char *text)
{
    (void)text;
    return message_pack_group_ended(b, &(struct message_group_ended){1, 2, 3, 4, false});
}

static int hello(struct buf *b, const char *text)
{
    (void)text;
    return message_pack_hello(b);
}

static const struct word {
    const char     *name;
    enum frame_type type;
    uint8_t         stream;
    int (*pack)(struct buf *b, const char *text);
    const char *text;
} words[] = {
    {"hello", FRAME_HELLO, 0, hello, NULL},
    {"cat", FRAME_SPAWN, 0, spawn, "/bin/cat"},
    {"yes", FRAME_SPAWN, 0, spawn, "/bin/yes"},
    {"exit", FRAME_SPAWN, 0, spawn, "/bin/x"},
    {"wait", FRAME_SPAWN, 0, spawn, "/bin/wait"},
    {"kills", FRAME_SPAWN, 0, spawn, "/bin/kills"},
    {"missing", FRAME_SPAWN, 0, spawn, "/bin/none"},
    {"file", FRAME_WRITE_FILE, 0, file, "/workspace/a"},
    {"file-n", FRAME_WRITE_FILE, 0, file, "/workspace/n"},
    {"file-w", FRAME_WRITE_FILE, 0, file, "/workspace/w"},
    {"file-p", FRAME_WRITE_FILE, 0, file, "/workspace/p"},
    {"data", FRAME_DATA, STREAM_IN, bytes, "some text\n"},
    {"bulk", FRAME_DATA, STREAM_IN, bulk, "."},
    {"out", FRAME_DATA, STREAM_OUT, bytes, "some output\n"},
    {"err", FRAME_DATA, STREAM_ERR, bytes, "JavaScript heap out of memory\n"},
    {"end", FRAME_END, STREAM_IN, NULL, NULL},
    {"end-out", FRAME_END, STREAM_OUT, NULL, NULL},
    {"end-err", FRAME_END, STREAM_ERR, NULL, NULL},
    {"credit-10", FRAME_CREDIT, STREAM_IN, number, "10"},
    {"credit-64k", FRAME_CREDIT, STREAM_IN, number, "65536"},
    {"credit-out", FRAME_CREDIT, STREAM_OUT, number, "4096"},
    {"kill", FRAME_SIGNAL, 0, number, "9"},
    {"attach", FRAME_ATTACH, 0, layer, "/store/layers/0/node_modules"},
    {"attached", FRAME_ATTACHED, 0, NULL, NULL},
    {"started", FRAME_STARTED, 0, NULL, NULL},
    {"done", FRAME_DONE, 0, NULL, NULL},
    {"exited", FRAME_EXITED, 0, exited, "0"},
    {"exited-wildly", FRAME_EXITED, 0, exited_wildly, NULL},
    {"error", FRAME_ERROR, 0, error, "it cannot be done"},
    {"net-echo", FRAME_SPAWN, 0, spawn, "/bin/t"},
    {"net-flood", FRAME_SPAWN, 0, spawn, "/bin/f"},
    {"net-half", FRAME_SPAWN, 0, spawn, "/bin/h"},
    {"net-hang-up", FRAME_SPAWN, 0, spawn, "/bin/r"},
    {"dns", FRAME_SPAWN, 0, spawn, "/bin/d"},
    {"serve", FRAME_SPAWN, 0, spawn, "/bin/s"},
    {"serve-ipv6", FRAME_SPAWN, 0, spawn, "/bin/l"},
    {"dial", FRAME_DIAL, 0, dial, "3000"},
    {"dial-1", FRAME_DIAL, 0, dial, "1"},
    {"read", FRAME_READ_FILE, 0, read_file, "1000 a"},
    {"read-some", FRAME_READ_FILE, 0, read_file, "3 a"},
    {"read-deep", FRAME_READ_FILE, 0, read_file, "1000 d/b"},
    {"read-dir", FRAME_READ_FILE, 0, read_file, "1000 d"},
    {"read-link", FRAME_READ_FILE, 0, read_file, "1000 l"},
    {"read-fifo", FRAME_READ_FILE, 0, read_file, "1000 p"},
    {"read-missing", FRAME_READ_FILE, 0, read_file, "1000 d/missing"},
    {"read-up", FRAME_READ_FILE, 0, read_up, "1000 d/xx"},
    {"scan", FRAME_SCAN, 0, scan, "100 "},
    {"scan-d", FRAME_SCAN, 0, scan, "100 d"},
    {"scan-few", FRAME_SCAN, 0, scan, "2 "},
    {"scan-file", FRAME_SCAN, 0, scan, "100 a"},
    {"scan-link", FRAME_SCAN, 0, scan, "100 l"},
    {"opened", FRAME_OPENED, 0, opened, "12"},
    {"rows", FRAME_ROWS, 0, rows, "a/b"},
    {"rows-up", FRAME_ROWS, 0, rows_up, "a/b/xx"},
    {"rows-strange", FRAME_ROWS, 0, rows_strange, "a"},
    {"scanned", FRAME_SCANNED, 0, scanned, "0"},
    {"connect", FRAME_CONNECT, 0, connect_to, "443 93.184.215.14"},
    {"connect-name", FRAME_CONNECT, 0, connect_to, "443 198.18.1.0"},
    {"connect-name-0", FRAME_CONNECT, 0, connect_to, "0 198.18.1.0"},
    {"connect-private", FRAME_CONNECT, 0, connect_to, "80 10.1.2.3"},
    {"connect-registry", FRAME_CONNECT, 0, connect_to, "4873 10.9.9.9"},
    {"bulk-out", FRAME_DATA, STREAM_OUT, bulk, "."},
    {"credit-in-12", FRAME_CREDIT, STREAM_IN, number, "12"},
    {"query", FRAME_LOOKUP, 0, query, "\1"},
    {"query-txt", FRAME_LOOKUP, 0, query, "\20"},
    {"query-edns", FRAME_LOOKUP, 0, query_edns, "\20"},
    {"connect-dns", FRAME_CONNECT, 0, connect_to, "53 198.18.0.2"},
    {"stream-a", FRAME_DATA, STREAM_OUT, stream, "\1"},
    {"stream-txt", FRAME_DATA, STREAM_OUT, stream, "\20"},
    {"stream-both", FRAME_DATA, STREAM_OUT, stream, "\20\1\20"},
    {"dns-edns", 0, 0, query_edns, "\20"},
    {"query-garbled", FRAME_LOOKUP, 0, bytes, "\1\1\1\1\1\1\1\1\1\1\1\1\1"},
    {"dns-query", 0, 0, query, "\1"},
    {"dns-txt", 0, 0, query, "\20"},
    {"dns-answer", 0, 0, answer, "\1"},
    {"reset", FRAME_RESET, 0, NULL, NULL},
    {"lookup", FRAME_LOOKUP, 0, bytes, "a query of some bytes"},
    {"found", FRAME_FOUND, 0, bytes, "an answer of some bytes"},
    {"plan", FRAME_PLAN, 0, bytes, "{}"},
    {"group-make", FRAME_GROUP_MAKE, 0, NULL, NULL},
    {"group-run", FRAME_GROUP_RUN, 0, NULL, NULL},
    {"group-drop", FRAME_GROUP_DROP, 0, NULL, NULL},
    {"group-end", FRAME_GROUP_END, 0, NULL, NULL},
    {"group-ended", FRAME_GROUP_ENDED, 0, group_ended, NULL},
    {"walls", FRAME_WALLS, 0, bytes, "[{\"name\":\"landlock\",\"on\":false}]"},
};

static void add_frame(struct buf *b, uint32_t channel, const char *name)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const struct word *w = &words[i];
        autobuf struct buf p;

        if (strcmp(w->name, name) != 0)
            continue;
        buf_init(&p, 1000);
        if (w->type == 0 && w->pack(b, w->text) == 0)
            return; /* bytes alone */
        if ((w->pack && w->pack(&p, w->text) < 0) ||
            frame_add(b, &(struct frame){w->type, w->stream, channel, p.data, p.size}) < 0)
            abort();
        return;
    }
    fprintf(stderr, "seeds: no word '%s'\n", name);
    exit(1);
}

static uint32_t channel_of(const char *word)
{
    return *word == '^' ? CHANNEL_OF_INIT | (uint32_t)atoi(word + 1) : (uint32_t)atoi(word);
}

static void tell(struct buf *b, const char *story)
{
    autofree char *copy = strdup(story);
    char          *save = NULL;

    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *colon = strchr(word, ':');

        if (word[0] == '+')
            buf_add(b, &(uint8_t){(uint8_t)atoi(word)}, 1);
        else if (strcmp(word, "cut") == 0)
            b->size -= 3;
        else
            add_frame(b, colon ? channel_of(word) : 0, colon ? colon + 1 : word);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) < 0) {
        fprintf(stderr, "usage: seeds CORPUS\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        autofd int         fd = open(seeds[i].path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        autobuf struct buf b;

        buf_init(&b, 1 << 16);
        tell(&b, seeds[i].story);
        if (fd < 0 || fd_write_all(fd, b.data, b.size) < 0) {
            perror(seeds[i].path);
            return 1;
        }
    }
    return 0;
}
