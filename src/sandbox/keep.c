#include "sandbox/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"

struct keep {
    unsigned    owners;
    size_t      shown;
    uint64_t    kept, size;
    const char *dir;
    struct buf  head; /* the first half of what is shown */
    uint8_t    *tail; /* the other: a ring; byte number n of the output is at n % tail_room */
    size_t      tail_room;
    int         fd;     /* -1: there was no need yet */
    bool        broken; /* or it failed */
};

struct keep *keep_new(size_t shown, size_t kept, const char *dir)
{
    struct keep *k = calloc(1, sizeof *k);

    if (!k)
        abort();
    *k = (struct keep){.owners = 1, .shown = shown, .kept = kept, .dir = dir, .fd = -1};
    buf_init(&k->head, shown / 2);
    k->tail_room = shown - shown / 2;
    return k;
}

struct keep *keep_ref(struct keep *k)
{
    k->owners++;
    return k;
}

void keep_free(struct keep *k)
{
    if (!k || --k->owners > 0)
        return;
    buf_done(&k->head);
    free(k->tail);
    fd_close(&k->fd);
    free(k);
}

uint64_t keep_size(const struct keep *k)
{
    return k->size;
}

bool keep_is_whole(const struct keep *k)
{
    return !k->broken;
}

/* ---- in memory ---- */

/* Bytes of the output that the tail has: how many, and the first one's number. */
static size_t tail_size(const struct keep *k)
{
    uint64_t behind = k->size - k->head.size;

    return behind < k->tail_room ? (size_t)behind : k->tail_room;
}

static void tail_copy(const struct keep *k, uint64_t from, size_t size, uint8_t *ret)
{
    size_t at = (size_t)(from % k->tail_room), first = k->tail_room - at;

    if (first > size)
        first = size;
    if (size > 0) {
        memcpy(ret, k->tail + at, first);
        memcpy(ret + first, k->tail, size - first);
    }
}

static void tail_add(struct keep *k, const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return;
    if (!k->tail)
        k->tail = malloc(k->tail_room);
    if (!k->tail)
        abort();
    for (size_t done = 0; done < size;) { /* in order: the last bytes win */
        size_t at = (size_t)((k->size + done) % k->tail_room), n = k->tail_room - at;
        if (n > size - done)
            n = size - done;
        memcpy(k->tail + at, bytes + done, n);
        done += n;
    }
}

static void memory_add(struct keep *k, const uint8_t *bytes, size_t size)
{
    size_t n = k->head.max - k->head.size;

    if (n > size)
        n = size;
    if (k->size == k->head.size) {
        buf_add(&k->head, bytes, n);
        k->size += n;
        bytes += n;
        size -= n;
    }
    tail_add(k, bytes, size);
    k->size += size;
}

/* ---- in the file ---- */

static int file_new(const char *dir)
{
    int fd = dir ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

    return fd >= 0 ? fd : memfd_create("output", MFD_CLOEXEC);
}

/* What was in memory only goes first. */
static int file_begin(struct keep *k)
{
    size_t             n = tail_size(k);
    autobuf struct buf rest;

    buf_init(&rest, n);
    k->fd = file_new(k->dir);
    if (k->fd < 0 || fd_write_all(k->fd, k->head.data, k->head.size) < 0)
        return -1;
    if (n == 0)
        return 0;
    tail_copy(k, k->size - n, n, buf_reserve(&rest, n));
    return fd_write_all(k->fd, rest.data, n);
}

static void file_add(struct keep *k, const uint8_t *bytes, size_t size)
{
    if (k->broken || (k->fd < 0 && k->size + size <= k->shown))
        return;
    if ((k->fd < 0 && file_begin(k) < 0) || fd_write_all(k->fd, bytes, size) < 0) {
        k->broken = true;
        fd_close(&k->fd); /* and gives back what it took of a full disk */
    }
}

bool keep_add(struct keep *k, const uint8_t *bytes, size_t size)
{
    bool fits = size <= k->kept - k->size;

    if (!fits)
        size = (size_t)(k->kept - k->size);
    file_add(k, bytes, size);
    memory_add(k, bytes, size);
    return fits;
}

/* ---- out again ---- */

static int memory_read(const struct keep *k, uint64_t offset, size_t size, uint8_t *ret)
{
    size_t n = offset < k->head.size ? k->head.size - (size_t)offset : 0;

    if (n > size)
        n = size;
    if (n > 0)
        memcpy(ret, k->head.data + offset, n);
    tail_copy(k, offset + n, size - n, ret + n);
    return 0;
}

static int file_read(const struct keep *k, uint64_t offset, size_t size, uint8_t *ret)
{
    while (size > 0) {
        ssize_t n = pread(k->fd, ret, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        ret += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

int keep_read(const struct keep *k, uint64_t offset, size_t max, struct buf *ret, struct err *e)
{
    uint64_t left = offset < k->size ? k->size - offset : 0;
    size_t   size = left < max ? (size_t)left : max;
    uint8_t *to;

    if (k->broken)
        return err_set(e, ERR_UNAVAILABLE, "the whole output was not kept: there was no space");
    if (size == 0)
        return 0;
    to = buf_reserve(ret, size);
    if (!to)
        return err_set(e, ERR_LIMIT, "the output is longer than there is room for");
    if ((k->fd < 0 ? memory_read : file_read)(k, offset, size, to) < 0)
        return err_sys(e, "the kept output");
    ret->size += size;
    return 0;
}

/* 12345 as "12,345". */
static void with_commas(uint64_t n, char ret[32])
{
    char   digits[24];
    size_t size = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n), at = 0;

    for (size_t i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0)
            ret[at++] = ',';
        ret[at++] = digits[i];
    }
    ret[at] = '\0';
}

static void add_notice(struct buf *b, uint64_t left_out, const char *uri)
{
    char count[32];

    with_commas(left_out, count);
    if (uri)
        buf_printf(b, "\n[… %s bytes left out; the whole output: %s …]\n", count, uri);
    else
        buf_printf(b, "\n[… %s bytes left out …]\n", count);
}

struct keep_text keep_text(const struct keep *k, const char *uri)
{
    struct keep_text ret = {0};
    size_t           head = k->head.size, tail = tail_size(k), cut = 0;
    autofree char   *rest = malloc(tail + 1);
    struct buf       b;

    if (!rest)
        abort();
    tail_copy(k, k->size - tail, tail, (uint8_t *)rest);
    buf_init(&b, 3 * k->shown + (uri ? strlen(uri) : 0) + 256);
    ret.left_out = k->size - head - tail;
    if (ret.left_out > 0) {
        size_t end = utf8_cut_end(k->head.data, head);
        cut = utf8_cut_front((uint8_t *)rest, tail);
        head -= end;
        ret.left_out += end + cut;
        ret.mended = utf8_mend(k->head.data, head, &b);
        add_notice(&b, ret.left_out, uri && !k->broken ? uri : NULL);
        ret.mended += utf8_mend((uint8_t *)rest + cut, tail - cut, &b);
    } else { /* one piece: a character may lie across */
        autobuf struct buf whole;
        buf_init(&whole, k->shown);
        buf_add(&whole, k->head.data, head);
        buf_add(&whole, rest, tail);
        ret.mended = utf8_mend(whole.data, whole.size, &b);
    }
    ret.text = buf_text(&b);
    ret.size = b.size;
    return ret; /* the buffer's memory is the caller's now */
}
