/* fuzz-frame - the codec: bytes taken apart as frames of each peer, each payload as each message.
 *
 * What it asserts beside "nothing is read or written out of bounds": a frame lies within its input,
 * and what was unpacked packs into the same bytes again (there is one way to write a message). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pipe/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static void require_same(const struct frame *f, int packed, const struct buf *b)
{
    require(packed == 0 && b->size == f->size && memcmp(b->data, f->payload, f->size) == 0);
}

#define ROUND_TRIP(name)                                                                           \
    static void round_trip_##name(const struct frame *f)                                           \
    {                                                                                              \
        struct message_##name m;                                                                   \
        struct err            e = {0};                                                             \
        autobuf struct buf    b;                                                                   \
                                                                                                   \
        buf_init(&b, FRAME_MAX);                                                                   \
        if (message_unpack_##name(f, &m, &e) == 0)                                                 \
            require_same(f, message_pack_##name(&b, &m), &b);                                      \
        else                                                                                       \
            require(e.kind == ERR_INVALID);                                                        \
    }

ROUND_TRIP(write_file)
ROUND_TRIP(attach)
ROUND_TRIP(dial)
ROUND_TRIP(read_file)
ROUND_TRIP(opened)
ROUND_TRIP(scan)
ROUND_TRIP(scanned)
ROUND_TRIP(exited)
ROUND_TRIP(connect)
ROUND_TRIP(error)
ROUND_TRIP(group_ended)

static void round_trip_spawn(const struct frame *f)
{
    struct message_spawn m;
    autobuf struct buf   b;

    buf_init(&b, FRAME_MAX);
    if (message_unpack_spawn(f, &m, NULL) < 0) {
        require(!m.argv && !m.env);
        return;
    }
    require(m.argv[0] != NULL);
    require_same(f, message_pack_spawn(&b, &m), &b);
    message_spawn_done(&m);
}

static void round_trip_rows(const struct frame *f)
{
    struct frame       rest = *f;
    struct message_row row;
    autobuf struct buf b;
    int                r;

    buf_init(&b, FRAME_MAX);
    while ((r = message_next_row(&rest, &row, NULL)) > 0)
        require(message_pack_row(&b, &row) == 0);
    require(b.size + rest.size == f->size && (r < 0) == (rest.size > 0));
    require(b.size == 0 || memcmp(b.data, f->payload, b.size) == 0);
}

static void round_trip_number(const struct frame *f)
{
    uint32_t           v;
    autobuf struct buf b;

    buf_init(&b, 16);
    if (message_unpack_u32(f, &v, NULL) == 0)
        require_same(f, message_pack_u32(&b, v), &b);
}

static void unpack_all(const struct frame *f)
{
    struct err e = {0};

    message_check_hello(f, &e);
    round_trip_number(f);
    round_trip_spawn(f);
    round_trip_write_file(f);
    round_trip_attach(f);
    round_trip_dial(f);
    round_trip_read_file(f);
    round_trip_opened(f);
    round_trip_scan(f);
    round_trip_rows(f);
    round_trip_scanned(f);
    round_trip_exited(f);
    round_trip_connect(f);
    round_trip_error(f);
    round_trip_group_ended(f);
}

static void parse_as(enum peer from, const uint8_t *data, size_t size)
{
    struct frame f;
    struct err   e = {0};
    long         n;

    while ((n = frame_parse(data, size, from, &f, &e)) > 0) {
        uint8_t header[FRAME_HEADER];

        require((size_t)n <= size && (size_t)n == FRAME_HEADER + f.size);
        require(f.payload == data + FRAME_HEADER && frame_type_name(f.type));
        frame_write_header(header, &f);
        require(memcmp(header, data, FRAME_HEADER) == 0);
        unpack_all(&f);
        data += n;
        size -= (size_t)n;
    }
    require((n < 0) == (e.kind == ERR_INVALID));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse_as(PEER_SERVER, data, size);
    parse_as(PEER_INIT, data, size);
    parse_as(PEER_JAIL, data, size);
    parse_as(PEER_INIT | PEER_JAIL, data, size); /* as the server hears its pipe */
    return 0;
}
