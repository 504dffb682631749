/* message - the payloads of frames that have structure, packed and unpacked.
 *
 * Numbers are little-endian; a string is its u32 length, its bytes, a NUL; a list is a u32 count
 * and that many strings. Unpacked strings are borrowed from the frame's payload. Unpacking trusts
 * nothing: a short, long or unterminated payload is -1 and one sentence. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "pipe/frame.h"

enum { MESSAGE_LIST_MAX = 4096 };

struct message_spawn {
    uint32_t     group;     /* the cgroup that GROUP_MAKE made for it */
    bool         has_stdin; /* otherwise its stdin is at its end */
    const char  *cwd;
    const char **argv; /* ended by NULL; unpacking allocates the two arrays: message_spawn_done */
    const char **env;
};

struct message_write_file {
    uint32_t    mode;
    const char *path;
};

struct message_dial {
    uint16_t port; /* not 0 */
};

/* These paths are relative to /workspace and plain: no component is empty, `.` or `..`. Neither end
 * packs or unpacks another, so that nobody has to think of them. */
struct message_read_file {
    uint64_t    most; /* bytes that are wanted, from the beginning */
    const char *path;
};

struct message_opened {
    uint64_t size; /* of the whole, at that moment */
};

struct message_scan {
    uint32_t    entries; /* at most so many rows */
    uint32_t    depth;   /* levels below the directory; 1: only what is in it */
    const char *path;    /* of the directory; empty: /workspace itself */
};

enum row_kind { ROW_FILE, ROW_DIR, ROW_LINK, ROW_OTHER, ROW_KINDS };

struct message_row {
    enum row_kind kind;
    uint64_t      size;
    int64_t       mtime_ns;
    const char   *path;
};

struct message_scanned {
    bool cut; /* there is more, or something could not be looked at */
};

/* A layer of the store for a running sandbox. */
struct message_attach {
    const char *source; /* a directory of the host */
    const char *target; /* in the sandbox: a name in a directory that the plan made */
};

/* How the main process of a run ended, as wait4 told. */
struct message_exited {
    int32_t  code;   /* or -1 */
    int32_t  signal; /* or 0 */
    uint64_t cpu_us; /* of it and what it waited for */
    uint64_t max_rss_bytes;
    uint64_t stdin_bytes; /* of its stdin that it took; if that had been ended, all there were */
    bool     disk_full;   /* no free block or inode in the writable places, at that moment */
};

/* Where code inside wanted to connect to. */
struct message_connect {
    uint8_t  address[16]; /* IPv6; IPv4 as ::ffff:a.b.c.d */
    uint16_t port;
};

/* The errno of an image without Node, which nothing else of a start has: who named it can mend it.
 */
enum { MESSAGE_NO_NODE = ENOPKG };

struct message_error {
    int32_t     sys; /* errno, or 0 */
    const char *text;
};

/* What the kernel counted for one run's cgroup; or, without cgroups, what the jail saw. */
struct message_group_ended {
    uint64_t oom_kills;
    uint64_t forks_refused;
    uint64_t peak_bytes;
    uint64_t cpu_us;
    bool     watched; /* there is no cgroup: sampled, and ending it ended all but init */
};

int  message_pack_spawn(struct buf *b, const struct message_spawn *m);
int  message_unpack_spawn(const struct frame *f, struct message_spawn *ret, struct err *e);
void message_spawn_done(struct message_spawn *m);

int message_pack_write_file(struct buf *b, const struct message_write_file *m);
int message_unpack_write_file(const struct frame *f, struct message_write_file *ret, struct err *e);

int message_pack_dial(struct buf *b, const struct message_dial *m);
int message_unpack_dial(const struct frame *f, struct message_dial *ret, struct err *e);

int message_pack_read_file(struct buf *b, const struct message_read_file *m);
int message_unpack_read_file(const struct frame *f, struct message_read_file *ret, struct err *e);

int message_pack_opened(struct buf *b, const struct message_opened *m);
int message_unpack_opened(const struct frame *f, struct message_opened *ret, struct err *e);

int message_pack_scan(struct buf *b, const struct message_scan *m);
int message_unpack_scan(const struct frame *f, struct message_scan *ret, struct err *e);

/* ROWS is one row after the other; whole ones. message_next_row takes the first off f's payload: 1,
 * 0 when there is none left, -1 when the rest is malformed. */
int message_pack_row(struct buf *b, const struct message_row *m);
int message_next_row(struct frame *f, struct message_row *ret, struct err *e);

int message_pack_scanned(struct buf *b, const struct message_scanned *m);
int message_unpack_scanned(const struct frame *f, struct message_scanned *ret, struct err *e);

int message_pack_attach(struct buf *b, const struct message_attach *m);
int message_unpack_attach(const struct frame *f, struct message_attach *ret, struct err *e);

int message_pack_exited(struct buf *b, const struct message_exited *m);
int message_unpack_exited(const struct frame *f, struct message_exited *ret, struct err *e);

int message_pack_connect(struct buf *b, const struct message_connect *m);
int message_unpack_connect(const struct frame *f, struct message_connect *ret, struct err *e);

int message_pack_error(struct buf *b, const struct message_error *m);
int message_unpack_error(const struct frame *f, struct message_error *ret, struct err *e);

/* ERROR as an error of ours. Its text may come from a hostile init: whatever a terminal would obey
 * (C0, DEL, and all beyond ASCII, for U+009B is an escape too) is taken out. */
void message_take_error(const struct frame *f, struct err *ret);
/* The same for a path that was looked for: what is not there is ERR_NOT_FOUND. */
void message_take_path_error(const struct frame *f, struct err *ret);

int message_pack_group_ended(struct buf *b, const struct message_group_ended *m);
int message_unpack_group_ended(const struct frame *f, struct message_group_ended *ret,
                               struct err *e);

/* HELLO: magic and version; another version is an error that names both. */
int message_pack_hello(struct buf *b);
int message_check_hello(const struct frame *f, struct err *e);

/* CREDIT, SIGNAL: one number. */
int message_pack_u32(struct buf *b, uint32_t v);
int message_unpack_u32(const struct frame *f, uint32_t *ret, struct err *e);
