#include "transport/http_head.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

enum { LENGTH_DIGITS_MAX = 15, CHUNK_DIGITS_MAX = 8, CHUNK_LINE_MAX = 4096 };

size_t http_head_size(struct http_scan *scan, const char *text, size_t size)
{
    const char *end;

    while ((end = memchr(text + scan->at, '\n', size - scan->at))) {
        size_t next = (size_t)(end - text) + 1;
        size_t length = next - 1 - scan->line;
        if (length == 0 || (length == 1 && text[scan->line] == '\r'))
            return next;
        scan->line = scan->at = next;
    }
    scan->at = size;
    return 0;
}

/* ---- characters ---- */

static bool is_token_char(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *text)
{
    const char *at = text;

    while (is_token_char((unsigned char)*at))
        at++;
    return at > text && *at == '\0';
}

static bool is_value(const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return false;
    return true;
}

/* ---- lines ---- */

/* The next line, ended by NUL; NULL when it holds a NUL itself. */
static char *next_line(char **rest, const char *end)
{
    char *line = *rest, *newline = memchr(line, '\n', (size_t)(end - line));
    char *last = newline > line && newline[-1] == '\r' ? newline - 1 : newline;

    *rest = newline + 1;
    *last = '\0';
    return memchr(line, '\0', (size_t)(last - line)) ? NULL : line;
}

static int refuse(int status, const char *why, const char **ret_why)
{
    *ret_why = why;
    return status;
}

/* "/path", "http://host/path"; what follows ? or # is nobody's here. */
static int parse_target(char *target, struct http_head *h, const char **ret_why)
{
    static const char scheme[] = "http://";

    for (const char *c = target; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return refuse(400, "the target of the request is none", ret_why);
    target[strcspn(target, "?#")] = '\0';
    h->path = target;
    if (strncasecmp(target, scheme, strlen(scheme)) == 0) {
        h->authority = target + strlen(scheme);
        h->authority_size = strcspn(h->authority, "/");
        h->path = h->authority + h->authority_size;
        if (h->authority_size == 0)
            return refuse(400, "the target of the request is none", ret_why);
    }
    return 0;
}

static int parse_request_line(char *line, struct http_head *h, const char **ret_why)
{
    char *target = strchr(line, ' ');
    char *version = target ? strchr(target + 1, ' ') : NULL;

    if (!version)
        return refuse(400, "a request begins with METHOD TARGET HTTP/1.1", ret_why);
    *target++ = *version++ = '\0';
    h->method = line;
    h->is_1_0 = strcmp(version, "HTTP/1.0") == 0;
    h->keeps_alive = !h->is_1_0;
    if (!is_token(line) || strncmp(version, "HTTP/", 5) != 0)
        return refuse(400, "a request begins with METHOD TARGET HTTP/1.1", ret_why);
    if (!h->is_1_0 && strcmp(version, "HTTP/1.1") != 0)
        return refuse(505, "only HTTP/1.1 is spoken here", ret_why);
    return parse_target(target, h, ret_why);
}

static int parse_field(char *line, struct http_head *h, const char **ret_why)
{
    char  *colon = strchr(line, ':'), *value, *end;
    size_t length;

    if (h->n == HTTP_FIELDS_MAX)
        return refuse(431, "too many headers", ret_why);
    if (!colon)
        return refuse(400, "a header is not NAME: VALUE", ret_why);
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    length = strlen(value);
    end = value + length;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    if (!is_token(line) || !is_value(value)) /* "NAME :" and folded lines too */
        return refuse(400, "a header is not NAME: VALUE", ret_why);
    h->fields[h->n++] = (struct http_field){line, value};
    return 0;
}

/* ---- what the fields mean for the connection ---- */

const char *http_head_find(const struct http_head *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcasecmp(h->fields[i].name, name) == 0)
            return h->fields[i].value;
    return NULL;
}

static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);

    while (*list) {
        size_t item;
        list += strspn(list, ", \t");
        item = strcspn(list, ", \t");
        if (item == length && strncasecmp(list, word, length) == 0)
            return true;
        list += item;
    }
    return false;
}

static int take_length(struct http_head *h, const char *value, bool has_length,
                       const char **ret_why)
{
    size_t digits = strspn(value, "0123456789");

    if (has_length || digits == 0 || value[digits] != '\0')
        return refuse(400, "Content-Length is one number", ret_why);
    if (digits > LENGTH_DIGITS_MAX)
        return refuse(413, "the body is too large", ret_why);
    h->length = strtoull(value, NULL, 10);
    return 0;
}

static int take_coding(struct http_head *h, const char *value, const char **ret_why)
{
    if (h->is_chunked || h->is_1_0)
        return refuse(400, "Transfer-Encoding is given once, in HTTP/1.1", ret_why);
    if (strcasecmp(value, "chunked") != 0)
        return refuse(501, "the only Transfer-Encoding is chunked", ret_why);
    h->is_chunked = true;
    return 0;
}

static int read_fields(struct http_head *h, const char **ret_why)
{
    bool has_length = false, has_host = false;
    int  status = 0;

    for (size_t i = 0; i < h->n && status == 0; i++) {
        const char *name = h->fields[i].name, *value = h->fields[i].value;

        if (strcasecmp(name, "Content-Length") == 0) {
            status = take_length(h, value, has_length, ret_why);
            has_length = true;
        } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
            status = take_coding(h, value, ret_why);
        } else if (strcasecmp(name, "Connection") == 0) {
            h->keeps_alive = h->is_1_0 ? list_has(value, "keep-alive")
                                       : h->keeps_alive && !list_has(value, "close");
        } else if (strcasecmp(name, "Expect") == 0) {
            h->expects_continue = !h->is_1_0 && strcasecmp(value, "100-continue") == 0;
        } else if (strcasecmp(name, "Host") == 0) {
            has_host = true;
        }
    }
    if (status == 0 && has_length && h->is_chunked)
        return refuse(400, "Content-Length and Transfer-Encoding exclude each other", ret_why);
    if (status == 0 && !has_host && !h->is_1_0)
        return refuse(400, "the header Host is missing", ret_why);
    return status;
}

int http_head_parse(char *text, size_t size, struct http_head *ret, const char **ret_why)
{
    char *rest = text, *line = next_line(&rest, text + size);
    int   status;

    ret->authority = NULL;
    ret->authority_size = ret->n = 0;
    ret->expects_continue = ret->is_chunked = false;
    ret->length = 0;
    if (!line)
        return refuse(400, "there is a NUL in the head", ret_why);
    status = parse_request_line(line, ret, ret_why);
    while (status == 0) {
        line = next_line(&rest, text + size);
        if (!line)
            return refuse(400, "there is a NUL in the head", ret_why);
        if (!*line)
            return read_fields(ret, ret_why);
        status = parse_field(line, ret, ret_why);
    }
    return status;
}

/* ---- chunks ---- */

static void begin_line(struct http_chunks *c)
{
    c->line = 0;
    c->has_digit = c->extends = c->is_cr = false;
}

/* Every line of the framing ends with CR LF, and holds neither else. 1: it has ended. */
static int take_line_end(struct http_chunks *c, char byte)
{
    if (c->is_cr || byte == '\n')
        return c->is_cr && byte == '\n' ? 1 : -1;
    if (++c->line > CHUNK_LINE_MAX)
        return -1;
    c->is_cr = byte == '\r';
    return 0;
}

static int take_size(struct http_chunks *c, char byte)
{
    int digit = str_hex_digit(byte), end = take_line_end(c, byte);

    if (end < 0 || (end > 0 && !c->has_digit))
        return -1;
    if (end > 0) {
        c->state = c->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
        begin_line(c);
        return 0;
    }
    if (c->is_cr || c->extends)
        return c->has_digit ? 0 : -1;
    if (digit < 0) {
        c->extends = true; /* ";name=value", which nobody needs */
        return c->has_digit && (byte == ';' || byte == ' ' || byte == '\t') ? 0 : -1;
    }
    c->has_digit = true;
    c->left = c->left * 16 + (unsigned)digit;
    return c->line > CHUNK_DIGITS_MAX ? -1 : 0;
}

static int take_data_end(struct http_chunks *c, char byte)
{
    int end = take_line_end(c, byte);

    if (end == 0 && byte != '\r')
        return -1;
    if (end > 0) {
        c->state = CHUNK_SIZE;
        begin_line(c);
    }
    return end < 0 ? -1 : 0;
}

/* Fields after the body are read and forgotten; an empty line is the end. */
static int take_trailer(struct http_chunks *c, char byte)
{
    int end = take_line_end(c, byte);

    if (end > 0) {
        c->state = c->line == 1 ? CHUNK_OVER : CHUNK_TRAILER; /* 1: its CR */
        begin_line(c);
    }
    return end < 0 ? -1 : 0;
}

int64_t http_chunks_take(struct http_chunks *c, const char *text, size_t size, char *body,
                         size_t *size_of_body, size_t max)
{
    size_t at = 0;
    int    r = 0;

    while (at < size && c->state != CHUNK_OVER && r == 0) {
        if (c->state == CHUNK_DATA) {
            size_t n = size - at < c->left ? size - at : (size_t)c->left;
            if (c->left > max - *size_of_body)
                return HTTP_CHUNKS_TOO_LARGE;
            memmove(body + *size_of_body, text + at, n);
            *size_of_body += n;
            at += n;
            c->left -= n;
            if (c->left == 0)
                c->state = CHUNK_DATA_END;
            continue;
        }
        r = c->state == CHUNK_SIZE       ? take_size(c, text[at])
            : c->state == CHUNK_DATA_END ? take_data_end(c, text[at])
                                         : take_trailer(c, text[at]);
        at++;
    }
    return r < 0 ? HTTP_CHUNKS_BAD : (int64_t)at;
}
