#include "pipe/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- packing ---- */

static int put_number(struct buf *b, uint64_t v, size_t bytes)
{
    uint8_t out[8];

    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(v >> (8 * i));
    return buf_add(b, out, bytes);
}

static int put_u32(struct buf *b, uint32_t v)
{
    return put_number(b, v, 4);
}

static int put_u64(struct buf *b, uint64_t v)
{
    return put_number(b, v, 8);
}

static int put_string(struct buf *b, const char *s)
{
    size_t n = strlen(s);

    TRY(put_u32(b, (uint32_t)n));
    return buf_add(b, s, n + 1);
}

static int put_list(struct buf *b, const char *const *list)
{
    uint32_t n = 0;

    while (list[n])
        n++;
    if (n > MESSAGE_LIST_MAX)
        return -1;
    TRY(put_u32(b, n));
    for (; *list; list++)
        TRY(put_string(b, *list));
    return 0;
}

/* ---- unpacking: a reader that, once it has run short, stays bad ---- */

struct reader {
    const uint8_t *at;
    size_t         left;
    bool           bad;
};

static struct reader read_frame(const struct frame *f)
{
    return (struct reader){.at = f->payload, .left = f->size};
}

static uint64_t get_number(struct reader *r, size_t bytes)
{
    uint64_t v = 0;

    if (r->bad || r->left < bytes) {
        r->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)r->at[i] << (8 * i);
    r->at += bytes;
    r->left -= bytes;
    return v;
}

static uint32_t get_u32(struct reader *r)
{
    return (uint32_t)get_number(r, 4);
}

static uint64_t get_u64(struct reader *r)
{
    return get_number(r, 8);
}

static bool get_bool(struct reader *r)
{
    uint64_t v = get_number(r, 1);

    if (v > 1)
        r->bad = true;
    return v == 1;
}

static const char *get_string(struct reader *r)
{
    size_t      n = get_u32(r);
    const char *s = (const char *)r->at;

    if (r->bad || n >= r->left || memchr(s, '\0', n + 1) != s + n) {
        r->bad = true;
        return "";
    }
    r->at += n + 1;
    r->left -= n + 1;
    return s;
}

static const char **get_list(struct reader *r)
{
    uint32_t     n = get_u32(r);
    const char **list;

    if (n > MESSAGE_LIST_MAX) {
        r->bad = true;
        n = 0;
    }
    list = calloc((size_t)n + 1, sizeof *list);
    if (!list)
        abort();
    for (uint32_t i = 0; i < n; i++)
        list[i] = get_string(r);
    return list;
}

static bool is_plain(const char *path)
{
    for (;; path++) {
        size_t n = strcspn(path, "/");

        if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        path += n;
        if (!*path)
            return true;
    }
}

static int finish(const struct reader *r, const struct frame *f, struct err *e)
{
    if (r->bad || r->left > 0)
        return err_set(e, ERR_INVALID, "malformed %s frame", frame_type_name(f->type));
    return 0;
}

/* ---- the messages ---- */

int message_pack_hello(struct buf *b)
{
    TRY(put_u32(b, PIPE_MAGIC));
    return put_u32(b, PIPE_VERSION);
}

int message_check_hello(const struct frame *f, struct err *e)
{
    struct reader r = read_frame(f);
    uint32_t      magic = get_u32(&r), version = get_u32(&r);

    TRY(finish(&r, f, e));
    if (magic != PIPE_MAGIC)
        return err_set(e, ERR_INVALID, "hello frame without our magic");
    if (version != PIPE_VERSION)
        return err_set(e, ERR_INVALID, "pipe version %u, expected %u", version, PIPE_VERSION);
    return 0;
}

int message_pack_u32(struct buf *b, uint32_t v)
{
    return put_u32(b, v);
}

int message_unpack_u32(const struct frame *f, uint32_t *ret, struct err *e)
{
    struct reader r = read_frame(f);

    *ret = get_u32(&r);
    return finish(&r, f, e);
}

int message_pack_spawn(struct buf *b, const struct message_spawn *m)
{
    TRY(put_u32(b, m->group));
    TRY(put_number(b, m->has_stdin, 1));
    TRY(put_string(b, m->cwd));
    TRY(put_list(b, m->argv));
    return put_list(b, m->env);
}

int message_unpack_spawn(const struct frame *f, struct message_spawn *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->group = get_u32(&r);
    ret->has_stdin = get_bool(&r);
    ret->cwd = get_string(&r);
    ret->argv = get_list(&r);
    ret->env = get_list(&r);
    if (!ret->argv[0])
        r.bad = true;
    if (finish(&r, f, e) < 0) {
        message_spawn_done(ret);
        return -1;
    }
    return 0;
}

void message_spawn_done(struct message_spawn *m)
{
    free(m->argv);
    free(m->env);
    m->argv = m->env = NULL;
}

int message_pack_write_file(struct buf *b, const struct message_write_file *m)
{
    TRY(put_u32(b, m->mode));
    return put_string(b, m->path);
}

int message_unpack_write_file(const struct frame *f, struct message_write_file *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->mode = get_u32(&r);
    ret->path = get_string(&r);
    return finish(&r, f, e);
}

int message_pack_dial(struct buf *b, const struct message_dial *m)
{
    return put_number(b, m->port, 2);
}

int message_unpack_dial(const struct frame *f, struct message_dial *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->port = (uint16_t)get_number(&r, 2);
    if (ret->port == 0)
        r.bad = true;
    return finish(&r, f, e);
}

int message_pack_read_file(struct buf *b, const struct message_read_file *m)
{
    TRY(is_plain(m->path) ? put_u64(b, m->most) : -1);
    return put_string(b, m->path);
}

int message_unpack_read_file(const struct frame *f, struct message_read_file *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->most = get_u64(&r);
    ret->path = get_string(&r);
    if (!is_plain(ret->path))
        r.bad = true;
    return finish(&r, f, e);
}

int message_pack_opened(struct buf *b, const struct message_opened *m)
{
    return put_u64(b, m->size);
}

int message_unpack_opened(const struct frame *f, struct message_opened *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->size = get_u64(&r);
    return finish(&r, f, e);
}

int message_pack_scan(struct buf *b, const struct message_scan *m)
{
    TRY(!*m->path || is_plain(m->path) ? put_u32(b, m->entries) : -1);
    TRY(put_u32(b, m->depth));
    return put_string(b, m->path);
}

int message_unpack_scan(const struct frame *f, struct message_scan *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->entries = get_u32(&r);
    ret->depth = get_u32(&r);
    ret->path = get_string(&r);
    if (*ret->path && !is_plain(ret->path))
        r.bad = true;
    return finish(&r, f, e);
}

int message_pack_row(struct buf *b, const struct message_row *m)
{
    TRY(is_plain(m->path) ? put_number(b, m->kind, 1) : -1);
    TRY(put_u64(b, m->size));
    TRY(put_u64(b, (uint64_t)m->mtime_ns));
    return put_string(b, m->path);
}

int message_next_row(struct frame *f, struct message_row *ret, struct err *e)
{
    struct reader r = read_frame(f);

    if (f->size == 0)
        return 0;
    ret->kind = (enum row_kind)get_number(&r, 1);
    ret->size = get_u64(&r);
    ret->mtime_ns = (int64_t)get_u64(&r);
    ret->path = get_string(&r);
    if (r.bad || ret->kind >= ROW_KINDS || !is_plain(ret->path))
        return err_set(e, ERR_INVALID, "malformed row in a %s frame", frame_type_name(f->type));
    f->payload = r.at;
    f->size = r.left;
    return 1;
}

int message_pack_scanned(struct buf *b, const struct message_scanned *m)
{
    return put_number(b, m->cut, 1);
}

int message_unpack_scanned(const struct frame *f, struct message_scanned *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->cut = get_bool(&r);
    return finish(&r, f, e);
}

int message_pack_attach(struct buf *b, const struct message_attach *m)
{
    TRY(put_string(b, m->source));
    return put_string(b, m->target);
}

int message_unpack_attach(const struct frame *f, struct message_attach *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->source = get_string(&r);
    ret->target = get_string(&r);
    return finish(&r, f, e);
}

int message_pack_exited(struct buf *b, const struct message_exited *m)
{
    TRY(put_u32(b, (uint32_t)m->code));
    TRY(put_u32(b, (uint32_t)m->signal));
    TRY(put_u64(b, m->cpu_us));
    TRY(put_u64(b, m->max_rss_bytes));
    TRY(put_u64(b, m->stdin_bytes));
    return put_number(b, m->disk_full, 1);
}

int message_unpack_exited(const struct frame *f, struct message_exited *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->code = (int32_t)get_u32(&r);
    ret->signal = (int32_t)get_u32(&r);
    ret->cpu_us = get_u64(&r);
    ret->max_rss_bytes = get_u64(&r);
    ret->stdin_bytes = get_u64(&r);
    ret->disk_full = get_bool(&r);
    bool by_exit = ret->code >= 0 && ret->code <= 255 && ret->signal == 0;
    bool by_signal = ret->code == -1 && ret->signal >= 1 && ret->signal <= 64;
    if (!by_exit && !by_signal)
        r.bad = true;
    return finish(&r, f, e);
}

int message_pack_connect(struct buf *b, const struct message_connect *m)
{
    TRY(buf_add(b, m->address, sizeof m->address));
    return put_number(b, m->port, 2);
}

int message_unpack_connect(const struct frame *f, struct message_connect *ret, struct err *e)
{
    struct reader r = read_frame(f);

    for (size_t i = 0; i < sizeof ret->address; i++)
        ret->address[i] = (uint8_t)get_number(&r, 1);
    ret->port = (uint16_t)get_number(&r, 2);
    return finish(&r, f, e);
}

int message_pack_error(struct buf *b, const struct message_error *m)
{
    TRY(put_u32(b, (uint32_t)m->sys));
    return put_string(b, m->text);
}

int message_unpack_error(const struct frame *f, struct message_error *ret, struct err *e)
{
    struct reader r = read_frame(f);

    ret->sys = (int32_t)get_u32(&r);
    ret->text = get_string(&r);
    return finish(&r, f, e);
}

void message_take_error(const struct frame *f, struct err *ret)
{
    struct message_error m;

    if (message_unpack_error(f, &m, ret) < 0)
        return;
    err_set(ret, ERR_UNAVAILABLE, "%s", m.text);
    ret->sys = m.sys;
    for (char *p = ret->msg; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
}

void message_take_path_error(const struct frame *f, struct err *ret)
{
    message_take_error(f, ret);
    if (ret->sys == ENOENT || ret->sys == ENOTDIR)
        ret->kind = ERR_NOT_FOUND;
}

int message_pack_group_ended(struct buf *b, const struct message_group_ended *m)
{
    TRY(put_u64(b, m->oom_kills));
    TRY(put_u64(b, m->forks_refused));
    TRY(put_u64(b, m->peak_bytes));
    TRY(put_u64(b, m->cpu_us));
    return put_number(b, m->watched, 1);
}

int message_unpack_group_ended(const struct frame *f, struct message_group_ended *ret,
                               struct err *e)
{
    struct reader r = read_frame(f);

    ret->oom_kills = get_u64(&r);
    ret->forks_refused = get_u64(&r);
    ret->peak_bytes = get_u64(&r);
    ret->cpu_us = get_u64(&r);
    ret->watched = get_bool(&r);
    return finish(&r, f, e);
}
