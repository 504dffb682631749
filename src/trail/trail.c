/* Theory of operation. Each line is written at once, by one write(2) of a descriptor that appends.
 * Before it, one stat of the path: when another file lies there, or none (logrotate), it is opened
 * anew.
 *
 * A full disk may have cut a line, ours or another server's, and the next one must not be joined to
 * it. So after a loss, and when the file was found so, the last byte is looked at again, and a line
 * break goes first if it is none. Not always: while another server writes, the file ends in half a
 * line for a moment, and the break would make an empty line.
 *
 * What cannot be written is counted; the next line that can has a line before it that tells. */
#include "trail/trail.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/utf8.h"

enum {
    STRING_MAX = 256, /* bytes */
    LIST_MAX = 100,
    LINE_MAX_BYTES = 1 << 20, /* more than such strings and lists can come to, all escaped */
    SESSION_DIGITS = 12,      /* of its 32 */
};

struct trail {
    char      *path; /* absolute */
    int        fd;
    bool       strict;
    char       server[9];
    bool       is_doubtful; /* it may end in half a line */
    json_int_t lines, lost;
    char       why[ERR_MSG_MAX]; /* the last one was lost */
    void (*note)(const char *sentence);
};

/* ---- the file ---- */

static bool ends_in_half_a_line(const struct trail *t)
{
    struct stat st;
    char        last;

    return fstat(t->fd, &st) == 0 && st.st_size > 0 &&
           pread(t->fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

static int open_file(struct trail *t, struct err *e)
{
    struct stat st;
    autofd int  fd =
        open(t->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "audit log %s", t->path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "audit log %s is not a regular file", t->path);
    fd_close(&t->fd);
    t->fd = take_fd(&fd);
    t->is_doubtful = ends_in_half_a_line(t);
    return 0;
}

/* Somebody moved it away, or made another. */
static bool is_at_path(const struct trail *t)
{
    struct stat ours, there;

    return t->fd >= 0 && fstat(t->fd, &ours) == 0 && stat(t->path, &there) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

static int append(struct trail *t, struct buf *line, struct err *e)
{
    ssize_t n;
    size_t  skip = 1; /* its first byte is a line break, for where one is missing */

    if (!is_at_path(t))
        TRY(open_file(t, e));
    if (t->is_doubtful && ends_in_half_a_line(t))
        skip = 0;
    do
        n = write(t->fd, line->data + skip, line->size - skip);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return err_sys(e, "audit log %s", t->path);
    if ((size_t)n < line->size - skip)
        return err_set(e, ERR_UNAVAILABLE, "audit log %s: no room for a whole line", t->path);
    t->is_doubtful = false;
    return 0;
}

/* ---- a line ---- */

static json_t *cut_text(const json_t *text)
{
    const char *bytes = json_string_value(text);
    size_t      size = json_string_length(text);

    if (size <= STRING_MAX)
        return json_incref((json_t *)text);
    size = STRING_MAX - utf8_cut_end((const uint8_t *)bytes, STRING_MAX);
    return json_sprintf("%.*s…", (int)size, bytes);
}

/* Foreign words within bounds, however deep they stand. */
static json_t *cut(const json_t *value)
{
    json_t     *copy, *row;
    const char *key;
    size_t      i;

    if (json_is_string(value))
        return cut_text(value);
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach ((json_t *)value, i, row) {
            json_array_append_new(copy, i < LIST_MAX ? cut(row) : json_string("…"));
            if (i == LIST_MAX)
                break;
        }
        return copy;
    }
    if (json_is_object(value)) {
        copy = json_object();
        json_object_foreach ((json_t *)value, key, row) {
            json_object_set_new(copy, key, cut(row));
        }
        return copy;
    }
    return json_incref((json_t *)value);
}

static void add_time(json_t *line)
{
    struct timespec now;
    struct tm       utc;
    char            text[sizeof "2026-01-02T03:04:05"];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, sizeof text, "%FT%T", &utc);
    json_object_set_new(line, "time", json_sprintf("%s.%03dZ", text, (int)(now.tv_nsec / 1000000)));
}

/* All members of the event in their order; a word that it does not have is an error of ours. */
static json_t *compose(struct trail *t, enum trail_event event, const json_t *members)
{
    json_t *line = json_object();
    size_t  known = 0;

    add_time(line);
    json_object_set_new(line, "server", json_string(t->server));
    json_object_set_new(line, "line", json_integer(++t->lines));
    json_object_set_new(line, "event", json_string(events_name(event)));
    for (const char *word = events_members(event); *word;) {
        char          name[32];
        size_t        n = strcspn(word, " ");
        const json_t *value;
        assert(n < sizeof name);
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        value = json_object_get(members, name);
        known += value != NULL;
        json_object_set_new(line, name, value ? cut(value) : json_null());
        word += n + (word[n] == ' ');
    }
    assert(known == json_object_size(members));
    return line;
}

static int collect(const char *bytes, size_t size, void *data)
{
    return buf_add(data, bytes, size);
}

static int write_line(struct trail *t, enum trail_event event, const json_t *members, struct err *e)
{
    autojson json_t   *line = compose(t, event, members);
    autobuf struct buf text;
    int                r;

    buf_init(&text, LINE_MAX_BYTES);
    buf_add(&text, "\n", 1);
    r = json_dump_callback(line, collect, &text, JSON_COMPACT | JSON_ENSURE_ASCII);
    assert(r == 0);
    (void)r;
    buf_add(&text, "\n", 1);
    return append(t, &text, e);
}

/* ---- what is lost ---- */

static void lose(struct trail *t, const struct err *e)
{
    t->is_doubtful = true;
    if (t->lost++ == 0 && t->note) {
        autofree char *sentence =
            str_format("%s: lines are lost%s", e->msg, t->strict ? ", and calls are refused" : "");
        t->note(sentence);
    }
    snprintf(t->why, sizeof t->why, "%s", e->msg);
}

static int tell_lost(struct trail *t, struct err *e)
{
    autojson json_t *members = NULL;

    if (t->lost == 0)
        return 0;
    members = json_pack("{s:I, s:o}", "lost", t->lost, "why", json_text(t->why, strlen(t->why)));
    if (write_line(t, TRAIL_LINES_LOST, members, e) < 0) {
        t->lines--; /* it tells of others and is no loss itself */
        return -1;
    }
    if (t->note) {
        autofree char *sentence =
            str_format("audit log %s: %lld lines were lost", t->path, (long long)t->lost);
        t->note(sentence);
    }
    t->lost = 0;
    return 0;
}

int trail_write(struct trail *t, enum trail_event event, json_t *members_take, struct err *e)
{
    autojson json_t *members = members_take;
    struct err       why = {0};

    assert(members);
    if (!t)
        return 0;
    if (tell_lost(t, &why) < 0)
        t->lines++; /* a number that is missing */
    else if (write_line(t, event, members, &why) == 0)
        return 0;
    lose(t, &why);
    if (e)
        *e = why;
    return -1;
}

bool trail_allows(const struct trail *t, int written)
{
    return !t || !t->strict || written == 0;
}

bool trail_is_well(const struct trail *t)
{
    return !t || !t->strict || t->lost == 0;
}

/* ---- of whom ---- */

void trail_new_call(char ret[TRAIL_CALL_MAX])
{
    char id[33];

    random_id(id);
    snprintf(ret, TRAIL_CALL_MAX, "%.16s", id);
}

/* Cut where a character ends: jansson takes whole ones only. */
static void copy_cut(char *ret, size_t size, const char *text)
{
    size_t n = strlen(text);

    if (n >= size)
        n = size - 1 - utf8_cut_end((const uint8_t *)text, size - 1);
    snprintf(ret, size, "%.*s", (int)n, text);
}

void trail_set_owner(struct trail_subject *s, const char *owner)
{
    bool   is_session = str_starts(owner, "session:");
    size_t size = is_session ? sizeof "session:" + SESSION_DIGITS : sizeof s->owner;

    copy_cut(s->owner, size, *owner ? owner : "anyone");
}

void trail_set_sandbox(struct trail_subject *s, const char *id)
{
    copy_cut(s->sandbox, sizeof s->sandbox, id);
}

static json_t *word(const char *text)
{
    return *text ? json_text(text, strlen(text)) : json_null();
}

json_t *trail_digest(const void *bytes, size_t size)
{
    struct sha256 h;
    char          hex[SHA256_HEX_SIZE];

    sha256_init(&h);
    sha256_add(&h, bytes, size);
    sha256_hex(&h, hex);
    return json_pack("{s:s, s:I}", "sha256", hex, "bytes", (json_int_t)size);
}

json_t *trail_members(const struct trail_subject *s)
{
    return json_pack("{s:o, s:o, s:o}", "call", word(s->call), "owner", word(s->owner), "sandbox",
                     word(s->sandbox));
}

/* ---- beginning and end ---- */

/* The directory must be there; the file need not. */
static char *absolute(const char *path, struct err *e)
{
    const char    *slash = strrchr(path, '/');
    autofree char *dir = slash ? str_ndup(path, (size_t)(slash - path) + 1) : str_dup(".");
    autofree char *real = realpath(dir, NULL);
    const char    *name = slash ? slash + 1 : path;

    if (!real) {
        err_sys(e, "audit log %s", path);
        return NULL;
    }
    return str_format("%s/%s", strcmp(real, "/") == 0 ? "" : real, name);
}

/* By what the path leads to: a link may lie there, or nothing yet. */
static int check_outside(const struct trail *t, const char *dir, struct err *e)
{
    autofree char *real = realpath(t->path, NULL), *around = dir ? realpath(dir, NULL) : NULL;
    const char    *file = real ? real : t->path;
    size_t         n = around ? strlen(around) : 0;

    if (around && strncmp(file, around, n) == 0 && (file[n] == '/' || n == 1))
        return err_set(e, ERR_INVALID, "audit log %s lies below %s, where scripts can change it",
                       t->path, dir);
    return 0;
}

struct trail *trail_open(const struct trail_spec *spec, struct err *e)
{
    struct trail *t = calloc(1, sizeof *t);
    char          id[33];

    if (!t)
        abort();
    random_id(id);
    *t = (struct trail){.fd = -1, .strict = spec->strict, .note = spec->note};
    snprintf(t->server, sizeof t->server, "%.8s", id);
    t->path = absolute(spec->path, e);
    /* Twice: before, so that nothing is made there; then of what a link that led nowhere made. */
    if (!t->path || check_outside(t, spec->outside_dir, e) < 0 || open_file(t, e) < 0 ||
        check_outside(t, spec->outside_dir, e) < 0) {
        trail_close(t);
        return NULL;
    }
    return t;
}

void trail_close(struct trail *t)
{
    if (!t)
        return;
    fd_close(&t->fd);
    free(t->path);
    free(t);
}
