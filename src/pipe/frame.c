#include "pipe/frame.h"

#include <assert.h>
#include <string.h>

static const struct frame_rule {
    const char *name;
    unsigned    senders;
    size_t      min, max; /* payload */
} rules[] = {
    [FRAME_HELLO] = {"hello", PEER_SERVER | PEER_INIT, 8, 8},
    [FRAME_DATA] = {"data", PEER_SERVER | PEER_INIT, 1, FRAME_DATA_MAX},
    [FRAME_END] = {"end", PEER_SERVER | PEER_INIT, 0, 0},
    [FRAME_CREDIT] = {"credit", PEER_SERVER | PEER_INIT, 4, 4},
    [FRAME_SPAWN] = {"spawn", PEER_SERVER, 1, FRAME_MAX},
    [FRAME_SIGNAL] = {"signal", PEER_SERVER, 4, 4},
    [FRAME_WRITE_FILE] = {"write-file", PEER_SERVER, 1, 8192},
    [FRAME_DIAL] = {"dial", PEER_SERVER, 2, 2},
    [FRAME_READ_FILE] = {"read-file", PEER_SERVER, 13, 8192},
    [FRAME_SCAN] = {"scan", PEER_SERVER, 13, 8192},
    [FRAME_STARTED] = {"started", PEER_INIT, 0, 0},
    [FRAME_EXITED] = {"exited", PEER_INIT, 1, 64},
    [FRAME_DONE] = {"done", PEER_INIT, 0, 0},
    [FRAME_ERROR] = {"error", PEER_INIT | PEER_JAIL, 1, 1024},
    [FRAME_OPENED] = {"opened", PEER_INIT, 8, 8},
    [FRAME_ROWS] = {"rows", PEER_INIT, 22, FRAME_DATA_MAX},
    [FRAME_SCANNED] = {"scanned", PEER_INIT, 1, 1},
    [FRAME_CONNECT] = {"connect", PEER_INIT, 18, 18},
    [FRAME_RESET] = {"reset", PEER_SERVER | PEER_INIT, 0, 0},
    [FRAME_LOOKUP] = {"lookup", PEER_INIT, 12, 4096},
    [FRAME_FOUND] = {"found", PEER_SERVER, 12, 4096},
    [FRAME_PLAN] = {"plan", PEER_SERVER, 2, FRAME_MAX},
    [FRAME_GROUP_MAKE] = {"group-make", PEER_SERVER, 0, 0},
    [FRAME_GROUP_END] = {"group-end", PEER_SERVER, 0, 0},
    [FRAME_GROUP_ENDED] = {"group-ended", PEER_JAIL, 1, 64},
    [FRAME_WALLS] = {"walls", PEER_JAIL, 2, 16384},
    [FRAME_ATTACH] = {"attach", PEER_SERVER, 12, 8192},
    [FRAME_ATTACHED] = {"attached", PEER_JAIL, 0, 0},
    [FRAME_GROUP_RUN] = {"group-run", PEER_SERVER, 0, 0},
    [FRAME_GROUP_DROP] = {"group-drop", PEER_SERVER, 0, 0},
};

static const struct frame_rule *rule_of(unsigned type)
{
    if (type >= sizeof rules / sizeof rules[0] || !rules[type].name)
        return NULL;
    return &rules[type];
}

const char *frame_type_name(unsigned type)
{
    const struct frame_rule *rule = rule_of(type);

    return rule ? rule->name : NULL;
}

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static int check_header(const uint8_t *data, size_t size, enum peer from, struct err *e)
{
    unsigned                 type = data[4];
    const struct frame_rule *rule = rule_of(type);

    if (!rule)
        return err_set(e, ERR_INVALID, "frame of unknown type %u", type);
    if (!(rule->senders & from))
        return err_set(e, ERR_INVALID, "%s frame from a peer that may not send it", rule->name);
    if (size < rule->min || size > rule->max)
        return err_set(e, ERR_INVALID, "%s frame of %zu bytes", rule->name, size);
    if (data[5] >= STREAM_COUNT || data[6] || data[7])
        return err_set(e, ERR_INVALID, "%s frame with a bad header", rule->name);
    return 0;
}

long frame_parse(const uint8_t *data, size_t size, enum peer from, struct frame *ret, struct err *e)
{
    size_t payload;

    if (size < FRAME_HEADER)
        return 0;
    payload = get_u32(data);
    TRY(check_header(data, payload, from, e)); /* before waiting for a payload that is too long */
    if (size - FRAME_HEADER < payload)
        return 0;
    *ret = (struct frame){.type = data[4],
                          .stream = data[5],
                          .channel = get_u32(data + 8),
                          .payload = data + FRAME_HEADER,
                          .size = payload};
    return (long)(FRAME_HEADER + payload);
}

void frame_write_header(uint8_t header[FRAME_HEADER], const struct frame *f)
{
    assert(f->size <= FRAME_MAX);
    put_u32(header, (uint32_t)f->size);
    header[4] = (uint8_t)f->type;
    header[5] = f->stream;
    header[6] = header[7] = 0;
    put_u32(header + 8, f->channel);
}

int frame_add(struct buf *b, const struct frame *f)
{
    uint8_t *to = buf_reserve(b, FRAME_HEADER + f->size);

    if (!to)
        return -1;
    frame_write_header(to, f);
    if (f->size > 0)
        memcpy(to + FRAME_HEADER, f->payload, f->size);
    b->size += FRAME_HEADER + f->size;
    return 0;
}
