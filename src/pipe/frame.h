/* frame - the grammar of the pipe: what one message looks like and who may send which.
 *
 *   u32 size of payload | u8 type | u8 stream | u16 zero | u32 channel | payload      little-endian
 *
 * One codec serves all ends: the server, jerboa-init inside and jerboa-jail beside it. A frame
 * whose type its sender may not use, or whose size is out of bounds, breaks the connection: there
 * is no resynchronising with a peer that may be hostile. docs/pipe.md shows one example a message.
 *
 * Only libc here: this file is part of the static init. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    FRAME_HEADER = 12,
    FRAME_MAX = 1 << 20,      /* payload */
    FRAME_DATA_MAX = 1 << 16, /* payload of DATA, so that no stream holds the pipe for long */

    PIPE_MAGIC = 0x6f62726a, /* "jrbo" */
    PIPE_VERSION = 1,

    /* Bytes of DATA that may be under way on a fresh stream before CREDIT comes. */
    WINDOW_TO_INIT = 1 << 16,
    WINDOW_FROM_INIT = 1 << 20,
    WINDOW_CONNECTION = 1 << 18, /* of a connection, each way: there may be hundreds */

    SCAN_BYTES_MAX = 1 << 22, /* payloads of all ROWS that answer one SCAN: they need no credit */
};

#define CHANNEL_OF_INIT 0x80000000u

/* Which of a process' streams. A file has only the first; of a connection the first goes to the
 * code inside, the second comes from it. */
enum { STREAM_IN = 0, STREAM_OUT = 1, STREAM_ERR = 2, STREAM_COUNT };

/* Senders, a bit each. */
enum peer { PEER_SERVER = 1, PEER_INIT = 2, PEER_JAIL = 4 };

enum frame_type {
    FRAME_HELLO = 1,

    FRAME_DATA = 8,
    FRAME_END, /* no more DATA on this stream; from init on STREAM_IN: nobody reads it any more */
    FRAME_CREDIT, /* this many more bytes may come */

    FRAME_SPAWN = 16, /* opens a channel: a process */
    FRAME_SIGNAL,
    FRAME_WRITE_FILE, /* opens a channel: DATA, END, then DONE comes back */
    FRAME_DIAL, /* opens a channel: a connection to a port inside; DATA, END and CREDIT both ways */
    FRAME_READ_FILE, /* opens a channel: OPENED, DATA and END come back, or ERROR */
    FRAME_SCAN,      /* opens a channel: ROWS come back, then SCANNED, or ERROR */

    FRAME_STARTED = 32,
    FRAME_EXITED,
    FRAME_DONE,
    FRAME_ERROR, /* on a channel: it is over; on channel 0: the sandbox is */
    FRAME_OPENED,
    FRAME_ROWS,
    FRAME_SCANNED,

    /* Egress. Init opens these channels; their numbers have CHANNEL_OF_INIT set. */
    FRAME_CONNECT = 48, /* a connection that code inside made: DATA, END and CREDIT both ways */
    FRAME_RESET,        /* it is over, in both directions; the channel is closed */
    FRAME_LOOKUP,       /* a DNS query, as it came */
    FRAME_FOUND,        /* its answer; the channel is closed */

    FRAME_PLAN = 64,   /* server to jail: what to build, JSON */
    FRAME_GROUP_MAKE,  /* a cgroup for one run; its number is the channel */
    FRAME_GROUP_END,   /* kill what is in it, remove it */
    FRAME_GROUP_ENDED, /* jail to server: its counters */
    FRAME_WALLS,       /* jail to server: which walls stand, JSON; before anything runs */
    FRAME_ATTACH,      /* server to jail: opens a channel: a layer to mount */
    FRAME_ATTACHED,    /* jail to server: it is; the channel is closed */
    FRAME_GROUP_RUN,   /* server to jail: from now on code runs in this group */
    FRAME_GROUP_DROP,  /* the same as GROUP_END for one in which none ever did */
};

struct frame {
    enum frame_type type;
    uint8_t         stream;
    uint32_t        channel;
    const uint8_t  *payload;
    size_t          size;
};

/* Looks at the beginning of data, sent by `from`: returns the length of one whole frame, 0 when
 * more bytes are needed, -1 when it can never become a frame. ret->payload points into data. */
long frame_parse(const uint8_t *data, size_t size, enum peer from, struct frame *ret,
                 struct err *e);

void frame_write_header(uint8_t header[FRAME_HEADER], const struct frame *f);

/* Appends header and payload; -1 when the buffer is full. */
int frame_add(struct buf *b, const struct frame *f);

const char *frame_type_name(unsigned type); /* "spawn", or NULL for a number without meaning */
