/* message - the payloads of frames that have structure, packed and unpacked.
 *
 * Numbers are little-endian; a string is its u32 length, its bytes, a NUL; a list is a u32 count
 * and that many strings. Unpacked strings are borrowed from the frame's payload. Unpacking trusts
 * nothing: a short, long or unterminated payload is -1 and one sentence. */
#pragma once

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
    bool     disk_full; /* no free block or inode in the writable places, at that moment */
};

/* Where code inside wanted to connect to. */
struct message_connect {
    uint8_t  address[16]; /* IPv6; IPv4 as ::ffff:a.b.c.d */
    uint16_t port;
};

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

int message_pack_group_ended(struct buf *b, const struct message_group_ended *m);
int message_unpack_group_ended(const struct frame *f, struct message_group_ended *ret,
                               struct err *e);

/* HELLO: magic and version; another version is an error that names both. */
int message_pack_hello(struct buf *b);
int message_check_hello(const struct frame *f, struct err *e);

/* CREDIT, SIGNAL: one number. */
int message_pack_u32(struct buf *b, uint32_t v);
int message_unpack_u32(const struct frame *f, uint32_t *ret, struct err *e);
